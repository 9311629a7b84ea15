"""Windows of records, and windows in cells."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.core.chunks import chunk_of
from potok.operators.windows.windows import late_reason, spans_of, spread, time_bytes, time_of
from potok.topology.nodes.windows import Hopping, tumbling_ms

instants = st.integers(-(1 << 62), 1 << 62)


@pytest.mark.parametrize(("at", "start"), [(0, 0), (9, 0), (10, 10), (-1, -10), (-10, -10), (-11, -20)])
def test_a_window_starts_at_a_multiple_of_its_size(at: int, start: int) -> None:
    chunk = chunk_of(["k"], [1], [at])
    chunk.stream_time = np.array([-100], np.int64)
    spans = spans_of(tumbling_ms(10, 0, 0), chunk)
    assert (spans.first.tolist(), spans.open.tolist(), spans.last.tolist()) == ([start], [start], [start])


@given(st.integers(1, 40), st.integers(1, 40), st.integers(-100, 100), st.integers(-100, 200), st.integers(0, 20))
def test_the_windows_of_a_record_are_those_that_hold_it_and_were_open(
    size: int, advance: int, at: int, stream_time: int, grace: int
) -> None:
    window = Hopping(size, min(advance, size), grace_ms=grace)
    chunk = chunk_of(["k"], [1], [at])
    chunk.stream_time = np.array([stream_time], np.int64)
    spans = spans_of(window, chunk)
    multiples = [n * window.advance_ms for n in range(-400, 401)]
    holding = [start for start in multiples if start <= at < start + size and not start < 0 <= at]
    is_open = [start for start in holding if start + size + grace > stream_time]
    assert (spans.first[0], spans.last[0]) == (holding[0], holding[-1])
    assert spans.late[0] == (is_open != holding)
    if is_open:
        assert spread(spans.open, spans.last, window.advance_ms)[1].tolist() == is_open
    else:
        assert spans.open[0] > spans.last[0]


@given(instants, instants)
def test_instants_as_bytes_sort_like_instants(one: int, two: int) -> None:
    left, right = time_bytes(np.array([one, two], np.int64))
    assert (left < right) is (one < two)
    assert (time_of(left), time_of(right)) == (one, two)


@pytest.mark.parametrize(
    ("stream_time", "grace", "late"), [(9, 0, False), (10, 0, True), (14, 5, False), (15, 5, True)]
)
def test_a_record_is_late_once_stream_time_has_reached_end_and_grace(stream_time: int, grace: int, late: bool) -> None:
    window = tumbling_ms(10, grace, 100)
    chunk = chunk_of(["k"], [1], [3])
    chunk.stream_time = np.array([stream_time], np.int64)
    assert spans_of(window, chunk).late.tolist() == [late]


def test_the_reason_names_the_window_and_how_far_it_is_over() -> None:
    chunk = chunk_of(pa.array(["k"]), [1], [3])
    chunk.stream_time = np.array([27], np.int64)
    window = tumbling_ms(10, 5, 100)
    reason = late_reason(window, chunk, spans_of(window, chunk), 0)
    assert "[0, 10)" in reason and "12 ms" in reason and "counted" not in reason


def test_a_record_may_be_late_for_some_of_its_windows() -> None:
    chunk = chunk_of(pa.array(["k"]), [1], [9])
    chunk.stream_time = np.array([13], np.int64)
    window = Hopping(10, 5, grace_ms=1)
    assert "[0, 10)" in late_reason(window, chunk, spans_of(window, chunk), 0)
    assert "counted in the 1 of its 2 windows" in late_reason(window, chunk, spans_of(window, chunk), 0)

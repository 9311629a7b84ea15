"""Windows of records, and windows in cells."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.chunks import chunk_of
from potok.kernels.windows import late_reason, late_rows, time_bytes, time_of, window_starts
from potok.topology.nodes.windows import tumbling_ms

instants = st.integers(-(1 << 62), 1 << 62)


@pytest.mark.parametrize(("at", "start"), [(0, 0), (9, 0), (10, 10), (-1, -10), (-10, -10), (-11, -20)])
def test_a_window_begins_at_a_multiple_of_its_size(at: int, start: int) -> None:
    assert window_starts(tumbling_ms(10, 0, 0), np.array([at], np.int64)).tolist() == [start]


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
    starts = window_starts(window, chunk.timestamp)
    assert late_rows(window, chunk, starts).tolist() == [late]


def test_the_reason_names_the_window_and_how_far_it_is_over() -> None:
    chunk = chunk_of(pa.array(["k"]), [1], [3])
    chunk.stream_time = np.array([27], np.int64)
    reason = late_reason(tumbling_ms(10, 5, 100), chunk, np.array([0], np.int64), 0)
    assert "[0, 10)" in reason and "12 ms" in reason

"""Sessions as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.operators.aggregates.pre_aggregate import AggregateOverflow
from potok.operators.windows import session_columns
from potok.operators.windows.session_columns import (
    OpenCells,
    SessionColumns,
    arrange,
    from_batch,
    joined,
    merged,
    without_value,
)
from potok.topology.aggregations import AggregatePlan, Slot

COUNT, TOTAL = Slot("count", None, pa.int64()), Slot("sum", None, pa.int64(), 100)
LEAST, GREATEST = Slot("min", None, pa.float64()), Slot("max", None, pa.int64())
SLOTS = (COUNT, TOTAL, LEAST, GREATEST)
FIELDS = ("n", "total", "least", "greatest")
RESULT = pa.struct([(name, slot.type) for name, slot in zip(FIELDS, SLOTS, strict=True)])
PLAN = AggregatePlan("fold", SLOTS, FIELDS, None, RESULT)

intervals = st.tuples(st.integers(0, 3), st.integers(-50, 50), st.integers(0, 9), st.integers(-5, 5))


def sessions_of(rows: list[tuple[int, int, int, int]]) -> SessionColumns:
    """Rows of key, start, length and value."""
    codes, starts, lengths, values = (np.array(part, np.int64) for part in zip(*rows, strict=True))
    slots: list[Any] = [np.ones(len(rows), np.int64), values, values.astype(np.float64), values.copy()]
    return SessionColumns(codes, starts, starts + lengths, starts, np.full(len(rows), 15, np.uint64), slots)


def union(rows: list[tuple[int, int, int, int]], gap: int) -> list[tuple[int, int, int, int, int, float, int]]:
    """The same, one row after the other."""
    found: list[list[Any]] = []
    for code, start, length, value in sorted(rows):
        last = found[-1] if found else None
        if last is not None and last[0] == code and start <= last[2] + gap:
            last[2] = max(last[2], start + length)
            last[3:] = [last[3] + 1, last[4] + value, min(last[5], value), max(last[6], value)]
        else:
            found.append([code, start, start + length, 1, value, float(value), value])
    return [tuple(row) for row in found]


@pytest.mark.parametrize("room", [1 << 62, 0])
@given(st.lists(intervals, min_size=1, max_size=30), st.integers(0, 8))
def test_sessions_that_touch_or_overlap_become_one(room: int, rows: list[tuple[int, int, int, int]], gap: int) -> None:
    sessions = sessions_of(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_columns, "_ROOM", room)
        order, firsts = arrange(sessions, gap)
    made = merged(sessions, order, firsts, SLOTS, "step")
    assert list(zip(made.codes, made.start, made.end, *made.slots, strict=True)) == union(rows, gap)


def test_keys_that_follow_each_other_are_kept_apart() -> None:
    sessions = sessions_of([(0, 0, 50, 1), (1, 0, 0, 1)])
    assert len(arrange(sessions, 1_000)[1]) == 2


def test_times_that_are_ages_apart_are_sorted_too() -> None:
    sessions = sessions_of([(0, 1 << 60, 1, 1), (1, -(1 << 60), 1, 1), (0, (1 << 60) + 2, 1, 1)])
    assert [part.tolist() for part in arrange(sessions, 1)] == [[0, 2, 1], [0, 2]]


def test_a_slot_without_a_value_changes_nothing() -> None:
    sessions = sessions_of([(0, 0, 0, 7), (0, 1, 0, 0)])
    sessions.valid[1] = 1
    for number, slot in enumerate(SLOTS):
        sessions.slots[number][1] = 1 if number == 0 else without_value(slot)
    made = merged(sessions, *arrange(sessions, 5), SLOTS, "step")
    assert [slot.tolist() for slot in made.slots] == [[2], [7], [7.0], [7]]
    assert made.valid.tolist() == [15]


def test_a_sum_that_does_not_fit_is_refused_and_one_that_fits_in_the_end_is_not() -> None:
    huge = sessions_of([(0, 0, 0, (1 << 63) - 1), (0, 1, 0, 1)])
    with pytest.raises(AggregateOverflow, match="step"):
        merged(huge, *arrange(huge, 5), SLOTS, "step")
    back = sessions_of([(0, 0, 0, (1 << 63) - 1), (0, 1, 0, 1), (0, 2, 0, -1)])
    assert merged(back, *arrange(back, 5), SLOTS, "step").slots[1].tolist() == [(1 << 63) - 1]


def test_sessions_travel_with_their_keys() -> None:
    sent = sessions_of([(0, 5, 2, 1), (1, 9, 0, 3)])
    keys, came = from_batch(sent.to_batch(pa.array([b"a", b"b"])))
    assert keys.to_pylist() == [b"a", b"b"]
    assert came.codes.tolist() == [0, 1] and came.end.tolist() == [7, 9]
    assert [slot.tolist() for slot in came.slots] == [slot.tolist() for slot in sent.slots]


def test_the_sessions_of_a_key_are_one_cell() -> None:
    cells = OpenCells(PLAN)
    sessions = sessions_of([(0, 5, 2, 1), (0, 20, 0, 3), (2, 9, 0, 4)])
    data = cells.encode(sessions, np.array([50, 0, 60], np.int64))
    assert data[1] is None
    read, due, exist = cells.decode(data)
    assert exist.tolist() == [True, False, True] and due[exist].tolist() == [50, 60]
    assert (read.codes.tolist(), read.start.tolist(), read.end.tolist()) == ([0, 0, 2], [5, 20, 9], [7, 20, 9])
    assert read.slots[1].tolist() == [1, 3, 4]


def test_initial_values_are_counted_in_once_when_a_row_is_shown() -> None:
    cells = OpenCells(PLAN)
    sessions = joined([sessions_of([(0, 0, 0, 7)]), sessions_of([(0, 3, 0, 8)])])
    made = merged(sessions, *arrange(sessions, 5), SLOTS, "step")
    rows = cells.rows(made)
    rendered = cells.closed.result(rows, np.ones(1, np.bool_)).to_pylist()
    assert rendered == [{"n": 2, "total": 115, "least": 7.0, "greatest": 8}]
    assert rows["timestamp"].tolist() == [3]

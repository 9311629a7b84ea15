"""Convert partial results of records that share all their windows to partial results of the windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.operators.aggregates.pre_aggregate import group_partials
from potok.operators.core.chunk import Ints
from potok.operators.windows.windows import spread
from potok.topology.aggregations import AggregatePlan
from potok.topology.nodes import Hopping

Array = npt.NDArray[Any]

SPARSE = 16
"""An array with a slot for each key and start is faster if it has at most this many slots per row."""


def by_window(table: pa.Table, plan: AggregatePlan, window: Hopping, step: str) -> pa.Table:
    """Convert rows of (key, start, last, ...), where start and last are the first and the last window, to one row for
    each key and window.
    """
    first, last = (table.column(name).to_numpy() for name in ("start", "last"))
    keys = table.column("key").combine_chunks().dictionary_encode()
    low, advance = int(first.min()), window.advance_ms
    starts = int(last.max() - low) // advance + 1
    slots = len(keys.dictionary) * starts
    if slots > SPARSE * len(table) or _may_overflow(table, plan, window):
        return _by_rows(table, plan, window, step)
    ids = keys.indices.to_numpy().astype(np.int64) * starts + (first - low) // advance
    counts = (last - first) // advance + 1
    sums = _Accumulators(slots, ids, counts)
    touched = np.flatnonzero(sums.touched)
    columns = {
        "key": keys.dictionary.take(pa.array(touched // starts)),
        "start": pa.array(low + touched % starts * advance),
        "timestamp": sums.greatest(table.column("timestamp"), touched),
        "stream_time": sums.greatest(table.column("stream_time"), touched),
    }
    for index, slot in enumerate(plan.slots):
        columns[f"s{index}"] = sums.slot(slot.op, table.column(f"s{index}"), touched)
    return pa.table(columns)


class _Accumulators:
    """One slot for each key and window; row r counts in `counts[r]` slots from `ids[r]` on."""

    def __init__(self, slots: int, ids: Ints, counts: Ints) -> None:
        self._slots, self._ids, self._counts = slots, ids, counts
        self.touched = np.zeros(slots, np.bool_)
        for rows, at in self._turns():
            self.touched[at[rows]] = True

    def _turns(self) -> list[tuple[npt.NDArray[np.bool_], Ints]]:
        """Return, for the first window of each row, the second and so on: the rows that have it, and its slot."""
        return [(self._counts > turn, self._ids + turn) for turn in range(int(self._counts.max()))]

    def greatest(self, column: pa.ChunkedArray, touched: Ints) -> pa.Array:
        return pa.array(self._gather(np.maximum, column.to_numpy(), np.iinfo(np.int64).min)[touched])

    def slot(self, op: str, column: pa.ChunkedArray, touched: Ints) -> pa.Array:
        present = ~column.is_null().combine_chunks().to_numpy(zero_copy_only=False)
        values = column.fill_null(0).to_numpy()
        floats = values.dtype.kind == "f"
        if op in ("count", "sum"):
            found = self._gather(np.add, np.where(present, values, 0), 0)
        else:
            limits = np.finfo(np.float64) if floats else np.iinfo(np.int64)
            worst = (np.inf if floats else limits.max) if op == "min" else (-np.inf if floats else limits.min)
            better = np.fmin if op == "min" else np.fmax
            found = self._gather(better, np.where(present, values, worst), worst)
        if present.all():
            return pa.array(found[touched], column.type)
        any_present = self._gather(np.logical_or, present, False)
        return pa.array(found[touched], column.type, mask=~any_present[touched])

    def _gather(self, combine: np.ufunc, values: Array, initial: Any) -> Array:
        found = np.full(self._slots, initial, values.dtype)
        for rows, at in self._turns():
            combine.at(found, at[rows], values[rows])
        return found


def _may_overflow(table: pa.Table, plan: AggregatePlan, window: Hopping) -> bool:
    """Whether a sum of integers could wrap around; the path through Arrow checks each."""
    several = window.size_ms // window.advance_ms + 1
    for index, slot in enumerate(plan.slots):
        column = table.column(f"s{index}")
        if slot.op == "sum" and pa.types.is_integer(column.type):
            values = column.fill_null(0).to_numpy()
            if float(np.abs(values.astype(np.float64)).sum()) * several >= 2.0**62:
                return True
    return False


def _by_rows(table: pa.Table, plan: AggregatePlan, window: Hopping, step: str) -> pa.Table:
    first, last = (table.column(name).to_numpy() for name in ("start", "last"))
    rows, starts = spread(first, last, window.advance_ms)
    wide = table.drop_columns(["last"]).take(pa.array(rows))
    wide = wide.set_column(wide.column_names.index("start"), "start", pa.array(starts))
    return group_partials(wide, plan, step)

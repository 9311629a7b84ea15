"""Sessions of many keys as columns: sorted, merged where they touch, and serialized in cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.operators.aggregates.pre_aggregate import AggregateOverflow
from potok.operators.cells.cell_codec import FixedCells, merge_slot
from potok.operators.core.chunk import Ints
from potok.operators.windows.expiry import NEVER
from potok.topology.aggregations import AggregatePlan, Slot

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

_ROOM = 1 << 62


@dataclass(slots=True)
class SessionColumns:
    """Row i is a session of key number codes[i], from its first record to its last.

    `reach` is the greatest stream time of the records in this batch; bit n of `valid` says that slot n has had a
    value. Initial values of slots are not included, so that two sessions merge.
    """

    codes: Ints
    start: Ints
    end: Ints
    reach: Ints
    valid: npt.NDArray[np.uint64]
    slots: list[Array]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Rows | Mask) -> SessionColumns:
        slots = [slot[rows] for slot in self.slots]
        return SessionColumns(
            self.codes[rows], self.start[rows], self.end[rows], self.reach[rows], self.valid[rows], slots
        )

    def to_batch(self, keys: pa.Array) -> pa.RecordBatch:
        """Serialize for a shuffle, with the keys that the codes refer to."""
        arrays: dict[str, Any] = {"key": pa.DictionaryArray.from_arrays(pa.array(self.codes, pa.int32()), keys)}
        arrays |= {name: pa.array(getattr(self, name)) for name in ("start", "end", "reach", "valid")}
        arrays |= {f"s{index}": pa.array(slot) for index, slot in enumerate(self.slots)}
        return pa.RecordBatch.from_pydict(arrays)


def from_batch(batch: pa.RecordBatch) -> tuple[pa.Array, SessionColumns]:
    keys = batch.column("key")
    start, end, reach, valid, *slots = (batch.column(index).to_numpy() for index in range(1, batch.num_columns))
    return keys.dictionary, SessionColumns(keys.indices.to_numpy().astype(np.int64), start, end, reach, valid, slots)


def joined(parts: Sequence[SessionColumns]) -> SessionColumns:
    if len(parts) == 1:
        return parts[0]
    return SessionColumns(
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        np.concatenate([part.reach for part in parts]),
        np.concatenate([part.valid for part in parts]),
        [np.concatenate(slots) for slots in zip(*(part.slots for part in parts), strict=True)],
    )


def arrange(sessions: SessionColumns, gap_ms: int) -> tuple[Rows, Rows]:
    """Return the rows by key and time, and where in that order each session starts that no earlier one touches."""
    codes, start, end = sessions.codes, sessions.start, sessions.end
    low, high = int(start.min()), int(end.max())
    span = high - low + 1 + gap_ms
    if span * (int(codes.max()) + 1) >= _ROOM:
        return _arrange_by_rank(codes, start, end, gap_ms)
    # Key and time as one number; the distance between two keys exceeds a gap.
    base = codes * span - low
    shifted = base + start
    order = np.argsort(shifted, kind="stable")
    far = np.maximum.accumulate((base + end)[order])
    begins = np.ones(len(order), np.bool_)
    begins[1:] = shifted[order][1:] > far[:-1] + gap_ms
    return order, np.flatnonzero(begins)


def _arrange_by_rank(codes: Ints, start: Ints, end: Ints, gap_ms: int) -> tuple[Rows, Rows]:
    """The same for so many keys or such distant times that one number cannot hold both."""
    order = np.lexsort((start, codes))
    times, rank = np.unique(end, return_inverse=True)
    far = np.maximum.accumulate((codes * len(times) + rank)[order])
    key, first = codes[order], start[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (key[1:] != key[:-1]) | (first[1:] > times[far[:-1] % len(times)] + gap_ms)
    return order, np.flatnonzero(begins)


def merged(sessions: SessionColumns, order: Rows, firsts: Rows, slots: Sequence[Slot], step: str) -> SessionColumns:
    """Merge each run of rows that `arrange` found to be one session."""
    found = sessions.take(order)
    return SessionColumns(
        found.codes[firsts],
        found.start[firsts],
        np.maximum.reduceat(found.end, firsts),
        np.maximum.reduceat(found.reach, firsts),
        np.bitwise_or.reduceat(found.valid, firsts),
        [_reduced(slot, values, firsts, step) for slot, values in zip(slots, found.slots, strict=True)],
    )


def _reduced(slot: Slot, values: Array, firsts: Rows, step: str) -> Array:
    if slot.op in ("count", "sum"):
        if values.dtype == np.int64 and _may_overflow(values):
            exact = np.add.reduceat(values.astype(object), firsts)
            if any(not -(1 << 63) <= total < 1 << 63 for total in exact):
                raise AggregateOverflow(step)
        return np.add.reduceat(values, firsts)
    return np.fmin.reduceat(values, firsts) if slot.op == "min" else np.fmax.reduceat(values, firsts)


def _may_overflow(values: Array) -> bool:
    return bool(max(abs(int(values.min())), abs(int(values.max()))) * len(values) >= 1 << 63)


def without_value(slot: Slot) -> int | float:
    """Return the value of a slot before any record: it changes nothing when sessions merge."""
    if slot.op in ("count", "sum"):
        return 0
    if slot.type == pa.float64():
        return float("nan")
    return np.iinfo(np.int64).max if slot.op == "min" else np.iinfo(np.int64).min


class OpenCells:
    """The open sessions of a key are one cell: an array, each with the time of the key's timer."""

    def __init__(self, plan: AggregatePlan, step: str = "") -> None:
        self._plan, self._step = plan, step
        self.closed = FixedCells(plan)
        self._slots = [f"s{index}" for index in range(len(plan.slots))]
        slots = [(name, self.closed.dtype[name]) for name in self._slots]
        self._dtype = np.dtype([("due", "<i8"), ("start", "<i8"), ("end", "<i8"), ("valid", "<u8"), *slots])

    def decode(self, cells: Sequence[bytes | None]) -> tuple[SessionColumns, Ints, Mask]:
        """Return the sessions of all cells, and the timer of each cell, if it has one."""
        width = self._dtype.itemsize
        counts = np.array([0 if cell is None else len(cell) // width for cell in cells], np.int64)
        rows = np.frombuffer(b"".join([cell for cell in cells if cell is not None]), self._dtype)
        sessions = SessionColumns(
            np.repeat(np.arange(len(cells)), counts),
            rows["start"].copy(),
            rows["end"].copy(),
            np.full(len(rows), NEVER, np.int64),
            rows["valid"].copy(),
            [rows[name].copy() for name in self._slots],
        )
        exist = counts > 0
        due = np.full(len(cells), NEVER, np.int64)
        due[exist] = rows["due"][(np.cumsum(counts) - counts)[exist]]
        return sessions, due, exist

    def encode(self, sessions: SessionColumns, due: Ints) -> list[bytes | None]:
        """Return one cell for each key; None for one without sessions. They are in key order."""
        rows = np.empty(len(sessions), self._dtype)
        rows["due"] = due[sessions.codes]
        rows["start"], rows["end"], rows["valid"] = sessions.start, sessions.end, sessions.valid
        for name, slot in zip(self._slots, sessions.slots, strict=True):
            rows[name] = slot
        data = rows.tobytes()
        bounds = np.searchsorted(sessions.codes, np.arange(len(due) + 1)) * self._dtype.itemsize
        offsets = bounds.tolist()
        return [data[low:high] or None for low, high in pairwise(offsets)]

    def rows(self, sessions: SessionColumns) -> Array:
        """Return the sessions as cells of the table, including the initial values."""
        found = np.zeros(len(sessions), self.closed.dtype)
        found["timestamp"] = sessions.end
        everything = np.ones(len(sessions), np.bool_)
        for index, (slot, values) in enumerate(zip(self._plan.slots, sessions.slots, strict=True)):
            bit = np.uint64(1 << index)
            has = (sessions.valid & bit) != 0
            if slot.initial is None:
                found[f"s{index}"] = np.where(has, values, 0)
                found["valid"] |= np.where(has, bit, np.uint64(0))
            else:
                base = np.full(len(sessions), slot.initial, values.dtype)
                found[f"s{index}"] = merge_slot(slot, base, everything, values, has, self._step)
                found["valid"] |= bit
        return found

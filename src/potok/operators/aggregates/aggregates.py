"""The post-shuffle operator of an aggregate: partial results merge into fenced cells of fixed width, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.operators.aggregates.pre_aggregate import merge_partials
from potok.operators.cells.cell_codec import FixedCells
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, Column, Ints, from_ipc
from potok.operators.core.operator import Operator, Task
from potok.operators.exchange.shards import key_column
from potok.operators.windows.expiry import Expiry
from potok.operators.windows.hopping import by_window
from potok.operators.windows.windows import time_bytes, times_of
from potok.state.session import StateSession
from potok.topology.aggregations import AggregatePlan
from potok.topology.nodes import FixedWindow, Hopping

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class Aggregate(Operator):
    """One value per key, or per key and window, from slots that merge."""

    checked = True

    def __init__(
        self,
        name: str,
        task: Task,
        plan: AggregatePlan,
        window: FixedWindow | None,
        key_type: pa.DataType | None,
        session: StateSession,
        watermark_ms: int,
    ) -> None:
        super().__init__(name, task)
        self._plan, self._window, self._key_type, self._session = plan, window, key_type, session
        self._cells = FixedCells(plan)
        self._partials: list[pa.Table] = []
        self._expiry = Expiry(name, window, session, watermark_ms) if window else None
        self._table = self._expiry.cells if self._expiry else name
        self._written: tuple[list[bytes], Array | None] = [], None

    def receive(self, payload: bytes) -> None:
        self._partials.append(pa.Table.from_batches([from_ipc(payload)]))

    @property
    def state_tables(self) -> list[str]:
        return [] if self._expiry is not None else [self.name]

    def next_due(self) -> int | None:
        return self._expiry.next_due() if self._expiry is not None else None

    def finish(self) -> None:
        if self._partials:
            self._merge(self._merged())
            self._partials = []
        if self._expiry is not None:
            if self.downstream and self._expiry.moves:
                self._emit_closed(self._expiry)
            self._expiry.settle()

    def _merged(self) -> pa.Table:
        """Return what the batch adds to each cell."""
        table = merge_partials(self._partials, self._plan, self.name)
        return by_window(table, self._plan, self._window, self.name) if isinstance(self._window, Hopping) else table

    def _merge(self, table: pa.Table) -> None:
        # In key order, so that neighbouring cells are read and written together.
        table = table.sort_by([(name, "ascending") for name in ("start", "key") if name in table.column_names])
        keys = table.column("key").combine_chunks()
        cell_keys = keys.to_pylist()
        starts = None
        if self._window is not None:
            starts = table.column("start").to_numpy()
            cell_keys = list(map(bytes.__add__, time_bytes(starts), cell_keys))
        old, existed = self._session.read_fixed(self._table, cell_keys, self._cells.dtype)
        new = self._cells.merge(old, existed, table, self.name if self.checked else None)
        self._session.write_fixed(self._table, cell_keys, new, old, existed)
        self._written = cell_keys, new
        self.emit(
            change(
                self.keys(keys, starts),
                self._cells.result(new, np.ones(len(new), np.bool_)),
                self._cells.result(old, existed),
                new["timestamp"],
                table.column("stream_time").to_numpy(),
            )
        )

    def _emit_closed(self, expiry: Expiry) -> None:
        assert self._window is not None
        cell_keys, old = expiry.closed_fixed(*self._written, self._cells.dtype)
        if not cell_keys:
            return
        starts = times_of([key[:8] for key in cell_keys])
        keys = self.keys(pa.array([key[8:] for key in cell_keys], pa.binary()), starts)
        nothing = self._cells.result(old, np.zeros(len(old), np.bool_))
        before = self._cells.result(old, np.ones(len(old), np.bool_))
        chunk = change(keys, nothing, before, old["timestamp"], self._closes(starts))
        chunk.expired = True
        self.emit(chunk)

    def _closes(self, starts: Array) -> Array:
        assert self._window is not None
        closes: Array = self._window.closes_ms(starts, starts + self._window.size_ms)
        return closes

    def keys(self, keys: pa.Array, starts: Array | None) -> Column:
        return table_keys(keys, starts, self._window, self._key_type)


def table_keys(
    keys: pa.Array, starts: Array | None, window: FixedWindow | None, key_type: pa.DataType | None
) -> Column:
    """Return the keys of a table as its downstream sees them; those of a windowed table include the window."""
    column = key_column(keys, key_type)
    if window is None or starts is None:
        return column
    ends = starts + window.size_ms
    if isinstance(column, list):
        return [
            {"key": key, "start": int(start), "end": int(end)}
            for key, start, end in zip(column, starts, ends, strict=True)
        ]
    names = ["key", "start", "end"]
    return pa.StructArray.from_arrays([column, pa.array(starts), pa.array(ends)], names)


def change(
    keys: Column,
    after: Column,
    before: Column | None,
    timestamps: Array,
    stream_times: Array,
    cause: Ints | None = None,
    headers: pa.Array | None = None,
) -> Chunk:
    """Return changes of a table: they have no input record, so they are numbered in the order of their keys."""
    count = len(timestamps)
    return Chunk(
        keys,
        after,
        np.ascontiguousarray(timestamps, np.int64),
        np.ascontiguousarray(stream_times, np.int64),
        np.full(count, NO_INPUT_PARTITION, np.int64),
        np.arange(count, dtype=np.int64),
        before,
        headers,
        cause=cause,
    )

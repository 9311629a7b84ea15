"""The pre-shuffle operator of a session aggregate: records are grouped into the parts of sessions they form.

Only these parts are sent to the shards.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from potok.operators.aggregates.pre_aggregate import HELD_ROWS, PreAggregate
from potok.operators.core.chunk import Chunk, Ints, to_ipc
from potok.operators.core.operator import Task
from potok.operators.exchange.shards import shards_of
from potok.operators.exchange.shuffle_writer import ShuffleWriter
from potok.operators.windows.lateness import on_time
from potok.operators.windows.session_columns import Array, Mask, SessionColumns, arrange, merged, without_value
from potok.operators.windows.windows import Spans
from potok.records.keys import encode_keys
from potok.topology.aggregations import AggregatePlan, Slot
from potok.topology.nodes import Session


class PreAggregateSessions(PreAggregate):
    """The parts of sessions in the records of one task."""

    def __init__(
        self,
        name: str,
        task: Task,
        plan: AggregatePlan,
        window: Session,
        shuffle_writer: ShuffleWriter,
        level: int,
        shards: int,
    ) -> None:
        super().__init__(name, task, plan, None, shuffle_writer, level, shards)
        self._session = window
        self._parts: list[tuple[pa.Array, SessionColumns]] = []

    def admit(self, chunk: Chunk) -> tuple[Chunk, Spans | None]:
        return on_time(self, self._session, self.keyed(chunk)), None

    def _group(self, table: pa.Table) -> pa.Table:
        """Collect single records: those of one key are seldom in one chunk, so they are sorted once, at the end."""
        return table

    def _hold(self, partial: pa.Table) -> None:
        self._partials.append(partial)
        self._held += len(partial)
        if self._held > HELD_ROWS:
            self._split()

    def _split(self) -> None:
        table = pa.concat_tables(self._partials)
        self._partials, self._held = [], 0
        if not len(table):
            return
        encoded = table.column("key").combine_chunks().dictionary_encode()
        records = self._records(table, encoded.indices.to_numpy().astype(np.int64))
        order, firsts = arrange(records, self._session.gap_ms)
        self._parts.append(
            (encode_keys(encoded.dictionary), merged(records, order, firsts, self._plan.slots, self.name))
        )

    def _records(self, table: pa.Table, codes: Ints) -> SessionColumns:
        """Return each record as its own session."""
        times = table.column("timestamp").to_numpy()
        valid = np.zeros(len(table), np.uint64)
        slots: list[Array] = []
        for index, slot in enumerate(self._plan.slots):
            column = table.column(f"s{index}") if slot.expr is not None else None
            values, has = _slot_column(slot, column, len(table))
            valid |= np.where(has, np.uint64(1 << index), np.uint64(0))
            slots.append(values)
        return SessionColumns(codes, times, times, table.column("stream_time").to_numpy(), valid, slots)

    def finish(self) -> None:
        if self._partials:
            self._split()
        for keys, sessions in self._parts:
            homes = shards_of(keys, self._shards)
            home = homes[sessions.codes]
            for shard in np.unique(homes):
                there = np.flatnonzero(homes == shard)
                numbers = np.zeros(len(homes), np.int64)
                numbers[there] = np.arange(len(there))
                part = sessions.take(home == shard)
                part.codes = numbers[part.codes]
                payload = to_ipc(part.to_batch(keys.take(pa.array(there))))
                self._shuffle_writer.send(self._level, int(shard), self.name, payload)
        self._parts = []


def _slot_column(slot: Slot, column: pa.ChunkedArray | None, count: int) -> tuple[Array, Mask]:
    """Return what each record adds to a slot, and whether it adds anything."""
    if column is None:
        return np.ones(count, np.int64), np.ones(count, np.bool_)
    has = ~np.asarray(column.is_null().to_numpy(), np.bool_)
    if slot.op == "count":
        return has.astype(np.int64), np.ones(count, np.bool_)
    dtype = np.float64 if slot.type == pa.float64() else np.int64
    filled = column if has.all() else column.fill_null(without_value(slot))
    return np.asarray(filled.to_numpy(), dtype), has

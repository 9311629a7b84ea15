"""The post-shuffle operator of a session aggregate: sessions are merged with the open ones, as arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.operators.aggregates.aggregates import change
from potok.operators.cells.wake_index import WakeIndex
from potok.operators.core.chunk import Column, Ints, from_ipc
from potok.operators.core.operator import Operator, Task
from potok.operators.windows.expiry import NEVER, index_of
from potok.operators.windows.session_columns import (
    Mask,
    OpenCells,
    Rows,
    SessionColumns,
    arrange,
    from_batch,
    joined,
    merged,
)
from potok.operators.windows.windows import open_table, spanned_keys, time_bytes, timers_of, times_of
from potok.state.session import StateSession
from potok.topology.aggregations import AggregatePlan
from potok.topology.nodes import Session

NOT_OPEN = np.iinfo(np.int64).max
"""The due time of a key without open sessions."""


class MergeSessions(Operator):
    """The sessions of the keys of one shard. Open ones are one cell for each key, closed ones are rows of the table.

    A key's timer is set no later than the first of its open sessions closes. It is not moved when a session grows: if
    it fires too early, it is set again.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        plan: AggregatePlan,
        window: Session,
        key_type: pa.DataType | None,
        session: StateSession,
        watermark_ms: int,
    ) -> None:
        super().__init__(name, task)
        self._plan, self._window, self._key_type = plan, window, key_type
        self._session, self._watermark_ms = session, watermark_ms
        self._cells = OpenCells(plan, name)
        self._timers = WakeIndex(timers_of(name), session)
        self._drops = WakeIndex(index_of(name), session)
        self._batches: list[pa.RecordBatch] = []

    def receive(self, payload: bytes) -> None:
        self._batches.append(from_ipc(payload))

    @property
    def state_tables(self) -> list[str]:
        return [self.name, open_table(self.name), self._timers.table, self._drops.table]

    def next_due(self) -> int | None:
        return min((due for due in (self._timers.next_due(), self._drops.next_due()) if due is not None), default=None)

    def finish(self) -> None:
        woken = self._timers.due(self._watermark_ms)
        keys, fresh = self._received()
        if woken:
            known = set(keys)
            keys += [key for key in woken if key not in known]
        if keys:
            self._merge(keys, fresh, set(woken))
        self._drop()
        self._timers.flush(self._watermark_ms)
        self._drops.flush(self._watermark_ms)

    def _received(self) -> tuple[list[bytes], SessionColumns | None]:
        """Return the keys in order, so that neighbouring cells are read together, and their sessions."""
        if not self._batches:
            return [], None
        parts = [from_batch(batch) for batch in self._batches]
        self._batches = []
        encoded = pa.concat_arrays([keys for keys, _ in parts]).dictionary_encode()
        order = pc.array_sort_indices(encoded.dictionary)
        rank = np.empty(len(order), np.int64)
        rank[order.to_numpy()] = np.arange(len(order))
        numbers, begin = rank[encoded.indices.to_numpy()], 0
        for keys, sessions in parts:
            sessions.codes = numbers[begin + sessions.codes]
            begin += len(keys)
        return encoded.dictionary.take(order).to_pylist(), joined([sessions for _, sessions in parts])

    def _merge(self, keys: list[bytes], fresh: SessionColumns | None, woken: set[bytes]) -> None:
        before = self._session.read(open_table(self.name), keys)
        old, due, existed = self._cells.decode(before)
        rows = old if fresh is None else joined([old, fresh])
        if not len(rows):
            return
        order, firsts = arrange(rows, self._window.gap_ms)
        now = merged(rows, order, firsts, self._plan.slots, self.name)
        if fresh is not None:
            self._emit_changes(keys, old, now, order, firsts)
        closed = self._window.closes_ms(now.start, now.end) <= self._watermark_ms
        if closed.any():
            self._close(keys, now.take(closed))
            now = now.take(~closed)
        gone_off = np.fromiter((key in woken for key in keys), np.bool_, len(keys)) if woken else ~existed
        due = self._set_timers(keys, now, due, gone_off | ~existed)
        cells = self._cells.encode(now, due)
        written = [row for row in zip(keys, cells, before, strict=True) if row[1] is not None or row[2] is not None]
        self._session.write(open_table(self.name), written)

    def _set_timers(self, keys: list[bytes], now: SessionColumns, due: Ints, missing: Mask) -> Ints:
        """Set the timers that are missing or too late; return their times."""
        closes = np.full(len(keys), NOT_OPEN, np.int64)
        np.minimum.at(closes, now.codes, self._window.closes_ms(now.start, now.end))
        wrong = missing | (closes < due)
        rows = np.flatnonzero(wrong & (closes < NOT_OPEN))
        self._timers.add(closes[rows], [keys[row] for row in rows.tolist()])
        return np.where(wrong, closes, due)

    def _emit_changes(
        self, keys: list[bytes], old: SessionColumns, now: SessionColumns, order: Rows, firsts: Rows
    ) -> None:
        """Emit what the batch changed: rows deleted because their session grew, and current rows."""
        group = np.empty(len(order), np.intp)
        group[order] = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(order))))
        touched = now.reach > NEVER
        mine = group[: len(old)]
        same = (old.start == now.start[mine]) & (old.end == now.end[mine])
        gone, grown = np.flatnonzero(touched[mine] & ~same), np.flatnonzero(touched)
        if not self.downstream:
            self.task.records_out[self.name] += len(gone) + len(grown)
            return
        was = np.full(len(now), -1)
        was[mine[same]] = np.flatnonzero(same)
        before = self._results(old)
        after = self._results(now.take(grown))
        changed = joined([old.take(gone), now.take(grown)])
        indexes = pa.array(was[grown], mask=was[grown] < 0)
        number = np.concatenate([mine[gone], grown])
        changes = change(
            self._keys(keys, changed),
            pa.concat_arrays([pa.nulls(len(gone), after.type), after]),
            pa.concat_arrays([before.take(pa.array(gone)), before.take(indexes)]),
            changed.end,
            now.reach[number],
        )
        changes = changes.take(np.argsort(number, kind="stable"))
        changes.offset = np.arange(len(changes), dtype=np.int64)
        self.emit(changes)

    def _close(self, keys: list[bytes], closed: SessionColumns) -> None:
        """Write rows that cannot change any more; those past their retention are not written."""
        drops = self._drop_at(closed.start, closed.end)
        past = drops <= self._watermark_ms
        if past.any():
            self._expire(keys, closed.take(past))
            closed, drops = closed.take(~past), drops[~past]
        if not len(closed):
            return
        ends = zip(closed.codes.tolist(), time_bytes(closed.start), time_bytes(closed.end), strict=True)
        cell_keys = [keys[code] + start + end for code, start, end in ends]
        rows = self._cells.rows(closed)
        nothing = np.zeros(len(rows), np.bool_)
        self._session.write_fixed(self.name, cell_keys, rows, np.zeros_like(rows), nothing)
        self._drops.add(drops, cell_keys)

    def _drop_at(self, starts: Ints, ends: Ints) -> Ints:
        """Return when a row may be deleted: its retention is over, and no record can reach it."""
        closes: Ints = self._window.closes_ms(starts, ends)
        return np.maximum(ends + self._window.retention_ms, closes)

    def _expire(self, keys: list[bytes], closed: SessionColumns) -> None:
        if self.downstream:
            self._emit_expired(self._keys(keys, closed), self._results(closed), closed.start, closed.end)

    def _drop(self) -> None:
        """Delete the rows whose retention is over."""
        cell_keys = self._drops.due(self._watermark_ms)
        if not cell_keys:
            return
        starts, ends = times_of([key[-16:-8] for key in cell_keys]), times_of([key[-8:] for key in cell_keys])
        drops = self._drop_at(starts, ends)
        over = drops <= self._watermark_ms
        if not over.all():
            early = np.flatnonzero(~over)
            self._drops.add(drops[early], [cell_keys[row] for row in early.tolist()])
            cell_keys = [cell_keys[row] for row in np.flatnonzero(over).tolist()]
            starts, ends = starts[over], ends[over]
        old, existed = self._session.read_fixed(self.name, cell_keys, self._cells.closed.dtype)
        self._session.delete_fixed(self.name, cell_keys, old, existed)
        if self.downstream and cell_keys:
            inner = pa.array([key[:-16] for key in cell_keys], pa.binary())
            changed = spanned_keys(inner, starts, ends, self._key_type)
            self._emit_expired(changed, self._cells.closed.result(old, existed), starts, ends)

    def _emit_expired(self, keys: Column, before: pa.Array, starts: Ints, ends: Ints) -> None:
        over = self._window.closes_ms(starts, ends)
        chunk = change(keys, pa.nulls(len(before), before.type), before, ends, over)
        chunk.expired = True
        self.emit(chunk)

    def _results(self, sessions: SessionColumns) -> pa.Array:
        return self._cells.closed.result(self._cells.rows(sessions), np.ones(len(sessions), np.bool_))

    def _keys(self, keys: list[bytes], sessions: SessionColumns) -> Column:
        found = pa.array(keys, pa.binary()).take(pa.array(sessions.codes))
        return spanned_keys(found, sessions.start, sessions.end, self._key_type)

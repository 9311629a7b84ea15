"""Windows that follow the records of a key, for every aggregate: recomputed whenever a record arrives."""

from __future__ import annotations

import pickle
from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.operators.aggregates.aggregates import change
from potok.operators.cells.cell_codec import decode_row
from potok.operators.cells.wake_index import WakeIndex
from potok.operators.core.call import plain_all, python_rows
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, Column, concat, from_wire
from potok.operators.core.dead_letters import InputPartition, Reason
from potok.operators.core.operator import Operator, Task, all_but
from potok.operators.core.unserializable import not_data
from potok.operators.exchange.shards import key_column
from potok.operators.windows.expiry import index_of
from potok.operators.windows.keyed_windows import Keeper, KeyedWindows, Revised
from potok.operators.windows.lateness import EventWindow
from potok.operators.windows.window_assigners import Bounds, Event
from potok.operators.windows.window_fold import Failures, FrameFold
from potok.operators.windows.windows import open_table, spanned_keys, time_bytes, time_of, timers_of
from potok.state.session import StateSession
from potok.topology.nodes import Session

Row = tuple[bytes, Revised]
"""A changed row of the table, by canonical key."""


class AccumulateWindows(Operator):
    """Sessions and sliding windows of the keys of one shard."""

    def __init__(
        self,
        name: str,
        task: Task,
        fold: FrameFold,
        window: EventWindow,
        key_type: pa.DataType | None,
        result_type: pa.DataType | None,
        session: StateSession,
        watermark_ms: int,
        input_partitions: list[InputPartition],
        *,
        each_record: bool = False,
    ) -> None:
        super().__init__(name, task)
        self._each_record = each_record
        self._fold, self._window, self._keeper = fold, window, Keeper(window, fold)
        self._key_type, self._result_type = key_type, result_type
        self._session, self._watermark_ms, self._input_partitions = session, watermark_ms, input_partitions
        self._timers = WakeIndex(timers_of(name), session)
        self._drops = WakeIndex(index_of(name), session)
        self._parts: list[tuple[Chunk, npt.NDArray[np.uint8]]] = []

    def receive(self, payload: bytes) -> None:
        marks, wire = pickle.loads(payload)
        self._parts.append((from_wire(wire), np.frombuffer(marks, np.uint8)))

    @property
    def state_tables(self) -> list[str]:
        return [self.name, open_table(self.name), self._timers.table, self._drops.table]

    def next_due(self) -> int | None:
        return min((due for due in (self._timers.next_due(), self._drops.next_due()) if due is not None), default=None)

    def finish(self) -> None:
        fresh = self._received()
        woken = set(self._timers.due(self._watermark_ms))
        keys = sorted({*fresh, *woken})
        if keys:
            self._update(keys, fresh, woken)
        self._drop()
        self._timers.flush(self._watermark_ms)
        self._drops.flush(self._watermark_ms)

    def _received(self) -> dict[bytes, list[Event]]:
        """Return the records by canonical key. Values that are not data cannot wait in state, and are set aside."""
        events: dict[bytes, list[Event]] = defaultdict(list)
        if not self._parts:
            return events
        chunk, marks = concat([chunk for chunk, _ in self._parts]), np.concatenate([marks for _, marks in self._parts])
        self._parts = []
        order = np.lexsort((chunk.offset, chunk.input_partition))
        chunk, marks = chunk.take(order), marks[order]
        assert not isinstance(chunk.key, list)
        keys = chunk.key
        values = chunk.value if isinstance(chunk.value, list) else python_rows(chunk.value)
        values = plain_all(values)
        errors = not_data(values)
        if errors:
            decoded = chunk.with_key(key_column(keys, self._key_type))
            self.task.dead_letters.add(decoded, errors, self.name, Reason.ERROR)
            good = np.flatnonzero(all_but(errors, len(chunk)))
            chunk, marks, values = chunk.take(good), marks[good], [values[row] for row in good.tolist()]
            keys = keys.take(pa.array(good))
        input_partitions = [
            (input_partition.topic, input_partition.partition) for input_partition in self._input_partitions
        ]
        columns = (chunk.timestamp, chunk.input_partition, chunk.offset, chunk.stream_time, marks)
        rows = zip(keys.to_pylist(), values, *(column.tolist() for column in columns), strict=True)
        for key, value, time, input_partition, offset, reach, mark in rows:
            position = (
                ("", -1, offset)
                if input_partition == NO_INPUT_PARTITION
                else (*input_partitions[input_partition], offset)
            )
            events[key].append(Event(time, position, reach, value, bool(mark & 1), bool(mark & 2), True))
        return events

    def _update(self, keys: list[bytes], fresh: dict[bytes, list[Event]], woken: set[bytes]) -> None:
        before = self._session.read(open_table(self.name), keys)
        decoded = python_rows(key_column(pa.array(keys, pa.binary()), self._key_type))
        revised: list[Row] = []
        closed: list[tuple[bytes, Bounds, bytes]] = []
        cells: list[tuple[bytes, bytes | None, bytes | None]] = []
        for key, data, rendered_key in zip(keys, before, decoded, strict=True):
            held = KeyedWindows.load(data)
            for events in self._portions(fresh.get(key, [])):
                changes, failures = self._keeper.take(held, events, rendered_key)
                revised += [(key, row) for row in changes]
                self._set_aside(rendered_key, failures)
            self._set_aside(rendered_key, self._keeper.settle(held, self._watermark_ms))
            closed += [(key, *row) for row in self._keeper.close(held, self._watermark_ms, woken=key in woken)]
            self._set_timer(key, held, woken=key in woken)
            new = held.dump()
            if new != data:
                cells.append((key, new, data))
        self._session.write(open_table(self.name), cells)
        self._emit_changes(revised)
        self._close(closed)

    def _portions(self, events: list[Event]) -> list[list[Event]]:
        """Split the records of a key into those that become one change of a row."""
        if self._each_record:
            return [[event] for event in events]
        return [events] if events else []

    def _set_timer(self, key: bytes, held: KeyedWindows, *, woken: bool) -> None:
        """Set the timer of a key no later than its first window closes; one that fired or is too late is reset."""
        due = self._keeper.next_due(held)
        if woken or held.due is None or due is None or due < held.due:
            held.due = due
            if due is not None:
                self._timers.add(np.array([due], np.int64), [key])

    def _set_aside(self, key: Any, failures: Failures) -> None:
        """Set records aside. They may be from an earlier batch, and their partition may have another number."""
        if not failures:
            return
        events = list(failures)
        input_partitions = {
            (input_partition.topic, input_partition.partition): number
            for number, input_partition in enumerate(self._input_partitions)
        }
        reach = np.array([event.reach for event in events], np.int64)
        chunk = Chunk(
            [key] * len(events),
            [event.value for event in events],
            np.array([event.time for event in events], np.int64),
            reach,
            np.array([input_partitions.get(event.add[:2], NO_INPUT_PARTITION) for event in events], np.int64),
            np.array([event.add[2] for event in events], np.int64),
        )
        self.task.dead_letters.add(chunk, dict(enumerate(failures.values())), self.name, Reason.ERROR)

    def _emit_changes(self, revised: list[Row]) -> None:
        if not self.downstream:
            self.task.records_out[self.name] += len(revised)
        elif revised:
            rows = [row for _, row in revised]
            times = np.array([decode_row(row.after or row.before or b"")[0] for row in rows], np.int64)
            reach = np.array([row.reach for row in rows], np.int64)
            keys = self._keys([key for key, _ in revised], [row.bounds for row in rows])
            after, before = self._results([row.after for row in rows]), self._results([row.before for row in rows])
            self.emit(change(keys, after, before, times, reach))

    def _close(self, closed: list[tuple[bytes, Bounds, bytes]]) -> None:
        """Write rows that cannot change any more; those past their retention are not written."""
        drops = [self._drop_at(bounds) for _, bounds, _ in closed]
        over = [row for row, drop in zip(closed, drops, strict=True) if drop <= self._watermark_ms]
        if over:
            self._emit_expired(*map(list, zip(*over, strict=True)))
        rest = [(row, drop) for row, drop in zip(closed, drops, strict=True) if drop > self._watermark_ms]
        if rest:
            cell_keys = self._cell_keys([row for row, _ in rest])
            pairs = zip(cell_keys, rest, strict=True)
            self._session.write(self.name, [(cell_key, row[2], None) for cell_key, (row, _) in pairs])
            self._drops.add(np.array([drop for _, drop in rest], np.int64), cell_keys)

    def _drop_at(self, bounds: Bounds) -> int:
        return max(bounds[1] + self._window.retention_ms, int(self._window.closes_ms(*bounds)))

    def _cell_keys(self, rows: list[tuple[bytes, Bounds, bytes]]) -> list[bytes]:
        starts, ends = (time_bytes(np.array([row[1][side] for row in rows], np.int64)) for side in (0, 1))
        ended = isinstance(self._window, Session)
        parts = zip(rows, starts, ends, strict=True)
        return [row[0] + start + (end if ended else b"") for row, start, end in parts]

    def _drop(self) -> None:
        """Delete the rows whose retention is over."""
        due = [(key, self._drop_at(self._split(key)[1])) for key in self._drops.due(self._watermark_ms)]
        early = [(key, drop) for key, drop in due if drop > self._watermark_ms]
        if early:
            self._drops.add(np.array([drop for _, drop in early], np.int64), [key for key, _ in early])
        cell_keys = [key for key, drop in due if drop <= self._watermark_ms]
        before = self._session.read(self.name, cell_keys)
        self._session.write(self.name, [(key, None, old) for key, old in zip(cell_keys, before, strict=True)])
        known = [(self._split(key), old) for key, old in zip(cell_keys, before, strict=True) if old is not None]
        if known:
            self._emit_expired([key for (key, _), _ in known], [b for (_, b), _ in known], [old for _, old in known])

    def _split(self, cell_key: bytes) -> tuple[bytes, Bounds]:
        if isinstance(self._window, Session):
            return cell_key[:-16], (time_of(cell_key[-16:-8]), time_of(cell_key[-8:]))
        start = time_of(cell_key[-8:])
        return cell_key[:-8], (start, start + self._window.size_ms)

    def _emit_expired(self, keys: list[bytes], bounds: list[Bounds], cells: list[bytes]) -> None:
        if not self.downstream:
            return
        times = np.array([decode_row(data)[0] for data in cells], np.int64)
        over = np.array([self._window.closes_ms(*both) for both in bounds], np.int64)
        nothing = self._results([None] * len(cells))
        chunk = change(self._keys(keys, bounds), nothing, self._results(list(cells)), times, over)
        chunk.expired = True
        self.emit(chunk)

    def _results(self, cells: list[bytes | None]) -> Column:
        values = [self._fold.result(data) for data in cells]
        return values if self._result_type is None else pa.array(values, self._result_type)

    def _keys(self, keys: list[bytes], bounds: list[Bounds]) -> Column:
        starts, ends = (np.array([both[side] for both in bounds], np.int64) for side in (0, 1))
        return spanned_keys(pa.array(keys, pa.binary()), starts, ends, self._key_type)

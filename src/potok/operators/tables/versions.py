"""Tables that keep versions: each row as of any instant of the retained history, by event time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from potok.operators.aggregates.accumulators import Rank
from potok.operators.aggregates.aggregates import change
from potok.operators.cells.cell_codec import decode_row, encode_row
from potok.operators.cells.timer_index import Timers
from potok.operators.core.call import plain, python_rows
from potok.operators.core.chunk import Chunk, Column, concat, from_wire, in_order
from potok.operators.core.dead_letters import InputPartition, Reason
from potok.operators.core.operator import Operator, Task, all_but
from potok.operators.core.processing_order import ranks_of
from potok.operators.core.unserializable import data_records
from potok.operators.exchange.shards import key_column
from potok.operators.windows.expiry import NEVER
from potok.operators.windows.windows import time_key, time_of
from potok.state.codec import dump_state, load_state
from potok.state.session import StateSession

Position = tuple[str, int, int]


class Version(NamedTuple):
    """A value of a row from an instant on; of two that start at one instant, the one with the later position wins."""

    time: int
    position: Position
    value: Any

    @property
    def rank(self) -> Rank:
        return self.time, self.position


def versions_of(table: str) -> str:
    """Return the table of versions, whose cells are keyed by the length of the key, the key and the time."""
    return f"{table}/versions"


def version_prefix(key: bytes) -> bytes:
    return len(key).to_bytes(4, "big") + key


def version_key(key: bytes, time_ms: int) -> bytes:
    return version_prefix(key) + time_key(time_ms)


def version_of(cell_key: bytes) -> tuple[bytes, int]:
    """Return the canonical key, and the instant from which a version is valid."""
    return cell_key[4:-8], time_of(cell_key[-8:])


def version_value(data: bytes) -> Any:
    """Return the value of a version; None for a delete."""
    return load_state(data)[1]


class KeepVersions(Operator):
    """The newest version of each row is the row; older ones are kept for `history_ms` behind the watermark W, and so
    is the one that was valid at W - history.

    A record is late once its time + history has been reached by the stream time of its partition. A later record that
    is accepted has a stream time of at least W, so its time is above W - history: it follows the oldest version that
    is kept, and versions dropped before that one, including deletes, cannot affect it.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        history_ms: int,
        types: tuple[pa.DataType | None, pa.DataType | None],
        session: StateSession,
        watermark_ms: int,
        input_partitions: list[InputPartition],
    ) -> None:
        super().__init__(name, task)
        self._history_ms, self._session, self._input_partitions = history_ms, session, input_partitions
        self._key_type, self._value_type = types
        self._horizon_ms = watermark_ms - history_ms if watermark_ms > NEVER else NEVER
        self._timers = Timers(f"{name}/by_time", session)
        self._chunks: list[Chunk] = []

    def receive(self, payload: bytes) -> None:
        self._chunks.append(from_wire(payload))

    @property
    def state_tables(self) -> list[str]:
        return [self.name, versions_of(self.name), self._timers.table]

    def next_due(self) -> int | None:
        first = self._timers.next_due()
        return None if first is None else first + self._history_ms

    def finish(self) -> None:
        chunk = self._admitted(in_order(concat(self._chunks))) if self._chunks else None
        chunk = None if chunk is None else data_records(self, chunk, self._key_type)
        self._chunks = []
        came = {} if chunk is None else self._versions(chunk)
        due = self._timers.due(self._horizon_ms)
        keys = sorted({*(key for key, _ in came), *(key for _, key in due)})
        if not keys:
            return
        before = self._session.read(self.name, keys)
        newest = {key: None if data is None else _row(data) for key, data in zip(keys, before, strict=True)}
        changed = self._take(came, newest)
        self._forget(due, newest)
        cells = [_cell(newest[key]) for key in keys]
        writes = [(key, cell, data) for key, cell, data in zip(keys, cells, before, strict=True)]
        self._session.write(self.name, [write for write in writes if write[1] != write[2]])
        self._timers.change([(time, key) for key, time in came], due)
        if changed:
            assert chunk is not None
            self._emit_changes(changed, newest, chunk)

    def _admitted(self, chunk: Chunk) -> Chunk:
        """Return the records whose time is within the history."""
        late = np.flatnonzero(chunk.timestamp + self._history_ms <= chunk.stream_time)
        if not len(late):
            return chunk
        behind = (chunk.stream_time - chunk.timestamp - self._history_ms).tolist()
        errors = {
            row: f"its time is outside the history: stream time {chunk.stream_time[row]} is {behind[row]} ms past it"
            for row in late.tolist()
        }
        assert isinstance(chunk.key, pa.Array)
        decoded = chunk.with_key(key_column(chunk.key, self._key_type))
        self.task.dead_letters.add(decoded, errors, self.name, Reason.LATE)
        return chunk.where(all_but(errors, len(chunk)))

    def _versions(self, chunk: Chunk) -> dict[tuple[bytes, int], Version]:
        """Return the new versions, by key and time."""
        assert isinstance(chunk.key, pa.Array)
        values = (plain(value) for value in python_rows(chunk.value))
        found: dict[tuple[bytes, int], Version] = {}
        for key, value, rank in zip(
            chunk.key.to_pylist(), values, ranks_of(chunk, self._input_partitions), strict=True
        ):
            version = Version(*rank, value)
            held = found.get((key, version.time))
            if held is None or version.rank >= held.rank:
                found[key, version.time] = version
        return found

    def _take(
        self, came: dict[tuple[bytes, int], Version], newest: dict[bytes, Version | None]
    ) -> dict[bytes, Version | None]:
        """Write the new versions, and return the rows with another newest version, each with its previous one."""
        pairs = list(came)
        cell_keys = [version_key(*pair) for pair in pairs]
        before = self._session.read(versions_of(self.name), cell_keys)
        changed: dict[bytes, Version | None] = {}
        writes: list[tuple[bytes, bytes | None, bytes | None]] = []
        for (key, time), cell_key, data in zip(pairs, cell_keys, before, strict=True):
            version, last = came[key, time], newest[key]
            if data is None or tuple(load_state(data)[0]) <= version.position:
                writes.append((cell_key, dump_state(([*version.position], version.value)), data))
            if last is None or version.rank >= last.rank:
                changed.setdefault(key, last)
                newest[key] = version
        self._session.write(versions_of(self.name), writes)
        return changed

    def _forget(self, due: list[tuple[int, bytes]], newest: dict[bytes, Version | None]) -> None:
        """Delete the versions that were no longer valid at the horizon; a row that was deleted by then is forgotten.

        A version is in the index until the horizon reaches it. From then on it is the oldest, until another is.
        """
        oldest = {key: time for time, key in due}
        ranges = [(version_prefix(key), version_key(key, time + 1)) for key, time in oldest.items()]
        found = self._session.rows_between(versions_of(self.name), ranges)
        deletes: list[tuple[bytes, bytes | None, bytes | None]] = []
        for (key, time), cells in zip(oldest.items(), found, strict=True):
            for cell_key, data in cells:
                if time_of(cell_key[-8:]) < time or version_value(data) is None:
                    deletes.append((cell_key, None, data))
            last = newest[key]
            if last is not None and last.value is None and last.time <= time:
                newest[key] = None
        self._session.write(versions_of(self.name), deletes)

    def _emit_changes(
        self, changed: dict[bytes, Version | None], newest: dict[bytes, Version | None], chunk: Chunk
    ) -> None:
        assert isinstance(chunk.key, pa.Array)
        reached = dict(zip(chunk.key.to_pylist(), chunk.stream_time.tolist(), strict=True))
        rows = []
        for key in sorted(changed):
            was, version = changed[key], newest[key]
            earlier, later = (None if side is None else side.value for side in (was, version))
            if version is not None and (earlier is not None or later is not None):
                rows.append((key, later, earlier, version.time))
        if rows:
            decoded = key_column(pa.array([row[0] for row in rows], pa.binary()), self._key_type)
            after, before = self._column([row[1] for row in rows]), self._column([row[2] for row in rows])
            times = np.array([row[3] for row in rows], np.int64)
            stream_times = np.array([reached[row[0]] for row in rows], np.int64)
            self.emit(change(decoded, after, before, times, stream_times))

    def _column(self, values: list[Any]) -> Column:
        return values if self._value_type is None else pa.array(values, self._value_type)


def _row(data: bytes) -> Version:
    time, topic, partition, offset, value = decode_row(data)[1]
    return Version(time, (topic, partition, offset), value)


def _cell(version: Version | None) -> bytes | None:
    if version is None:
        return None
    return encode_row(version.time, [version.time, *version.position, version.value])

"""Aggregates that take one record after the other, on the shard of their key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from potok.errors import StateError
from potok.kernels.aggregates import change, table_keys
from potok.kernels.call import Errors, describe_error, plain, python_rows
from potok.kernels.chunk import NO_LANE, Chunk, Column, Ints, concat, from_wire, in_order
from potok.kernels.dead_letters import Lane, Reason
from potok.kernels.expiry import Expiry
from potok.kernels.folders import Folder, Rank
from potok.kernels.operator import Operator, Task
from potok.kernels.shards import key_column
from potok.kernels.windows import time_bytes, time_of, window_starts
from potok.state.codec import dump_state, load_state
from potok.state.session import StateSession
from potok.topology.nodes import Tumbling

_UNFIT = (StateError, pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError)
"""What goes wrong with an aggregate that is no data, or not of the declared type."""


class FoldRecords(Operator):
    """One state per key, or per key and window; a state is (time, what the folder keeps)."""

    def __init__(
        self,
        name: str,
        task: Task,
        folder: Folder,
        window: Tumbling | None,
        key_type: pa.DataType | None,
        result_type: pa.DataType | None,
        session: StateSession,
        clock_ms: int,
        lanes: list[Lane],
        *,
        declared: bool = False,
    ) -> None:
        super().__init__(name, task)
        self._folder, self._window, self._session = folder, window, session
        self._key_type, self._result_type, self._lanes = key_type, result_type, lanes
        self._declared = declared
        self._chunks: list[Chunk] = []
        self._expiry = Expiry(name, window, session, clock_ms) if window else None

    def receive(self, payload: bytes) -> None:
        self._chunks.append(from_wire(payload))

    def finish(self) -> None:
        if self._chunks:
            self._fold(in_order(concat(self._chunks)))
            self._chunks = []
        if self._expiry is not None:
            self._expire(self._expiry)

    def _fold(self, chunk: Chunk) -> None:
        assert isinstance(chunk.key, pa.Array)
        starts = None if self._window is None else window_starts(self._window, chunk.timestamp)
        keys: list[bytes] = chunk.key.to_pylist()
        cell_keys = keys if starts is None else [k + s for k, s in zip(keys, time_bytes(starts), strict=True)]
        unique = list(dict.fromkeys(cell_keys))
        before = dict(zip(unique, self._session.read(self.name, unique), strict=True))
        states, errors = self._run(chunk, cell_keys, before)
        rows = self._settle(chunk, states, before, cell_keys, errors)
        if errors:
            shown = chunk.with_key(key_column(chunk.key, self._key_type))
            self.task.dead_letters.add(shown, errors, self.name, Reason.ERROR)
        self._session.write(self.name, rows)
        if self._expiry is not None and rows:
            touched = [key for key, _, _ in rows]
            existed = np.array([old is not None for _, _, old in rows], np.bool_)
            self._expiry.opened(touched, _starts(touched), existed)
        self._emit(states, before, greatest_of(cell_keys, chunk.stream_time))

    def _run(
        self, chunk: Chunk, cell_keys: list[bytes], before: dict[bytes, bytes | None]
    ) -> tuple[dict[bytes, Any], Errors]:
        """Fold all records in order; the state of a key is (time, what the folder keeps)."""
        add, states = self._folder.add, dict[bytes, Any]()
        keys, values, ranks = self._records(chunk)
        times = chunk.timestamp.tolist()
        errors: Errors = {}
        fragile: set[bytes] = set()
        for row, cell_key in enumerate(cell_keys):
            state = states.get(cell_key)
            if state is None:
                state = self._initial(before[cell_key], times[row])
            # What fails once may fail again: its state is put away before each further try.
            saved = dump_state((state[0], self._folder.kept(state[1]))) if cell_key in fragile else None
            try:
                kept = add(state[1], keys[row], values[row], ranks[row])
            except Exception as error:  # noqa: BLE001 - the user's aggregator may raise anything
                errors[row] = describe_error(error)
                if self._folder.mutable and cell_key in states:
                    fed = (
                        [r for r in range(row) if cell_keys[r] == cell_key and r not in errors] if saved is None else []
                    )
                    parts = [(keys[r], values[r], ranks[r], times[r]) for r in fed]
                    states[cell_key] = load_state(saved) if saved else self._again(before[cell_key], parts)
                    fragile.add(cell_key)
                continue
            states[cell_key] = (state[0] if state[0] > times[row] else times[row], kept)
        return states, errors

    def _settle(
        self,
        chunk: Chunk,
        states: dict[bytes, Any],
        before: dict[bytes, bytes | None],
        cell_keys: list[bytes],
        errors: Errors,
    ) -> list[tuple[bytes, bytes | None, bytes | None]]:
        """The states as bytes. For one that cannot be kept, the records that led to it are found and set aside."""
        rows: list[tuple[bytes, bytes | None, bytes | None]] = []
        for key in list(states):
            try:
                rows.append((key, self._data(states[key]), before[key]))
            except _UNFIT:
                fed = [row for row, other in enumerate(cell_keys) if other == key and row not in errors]
                data = self._carefully(chunk.take(np.array(fed)), fed, before[key], errors)
                if data is None:
                    del states[key]
                    continue
                states[key] = load_state(data)
                rows.append((key, data, before[key]))
        return rows

    def _data(self, state: tuple[int, Any]) -> bytes:
        """A state as bytes, if it is data and has the declared type."""
        if self._declared and self._result_type is not None:
            pa.scalar(plain(self._folder.result(state[1])), self._result_type)
        return dump_state((state[0], self._folder.kept(state[1])))

    def _carefully(self, chunk: Chunk, rows: list[int], before: bytes | None, errors: Errors) -> bytes | None:
        """The records of one key again, each on the state that the last good one left."""
        keys, values, ranks = self._records(chunk)
        data = before
        for row, key, value, rank, time in zip(rows, keys, values, ranks, chunk.timestamp.tolist(), strict=True):
            state = self._initial(data, time)
            try:
                data = self._data((max(state[0], time), self._folder.add(state[1], key, value, rank)))
            except Exception as error:  # noqa: BLE001 - the user's aggregator may raise anything
                errors[row] = describe_error(error)
        return data if data != before else None

    def _initial(self, data: bytes | None, time: int) -> tuple[int, Any]:
        return load_state(data) if data is not None else (time, self._folder.start())

    def _again(self, data: bytes | None, fed: list[tuple[Any, Any, Rank | None, int]]) -> tuple[int, Any]:
        """The state without a record that failed: it may have been changed in place before the failure."""
        state = self._initial(data, fed[0][3])
        for key, value, rank, time in fed:
            state = (max(state[0], time), self._folder.add(state[1], key, value, rank))
        return state

    def _records(self, chunk: Chunk) -> tuple[list[Any], list[Any], Sequence[Rank | None]]:
        keys = key_column(chunk.key, self._key_type)
        values = chunk.value
        if self._folder.wrapped or not isinstance(values, list):
            values = python_rows(values)
        ranks: Sequence[Rank | None] = self._ranks(chunk) if self._folder.ranked else [None] * len(chunk)
        return python_rows(keys), values, ranks

    def _ranks(self, chunk: Chunk) -> list[Rank | None]:
        lanes = [(lane.topic, lane.partition) for lane in self._lanes]
        rows = zip(chunk.timestamp.tolist(), chunk.lane.tolist(), chunk.offset.tolist(), strict=True)
        return [(time, ("", -1, offset) if lane == NO_LANE else (*lanes[lane], offset)) for time, lane, offset in rows]

    def _emit(
        self, states: dict[bytes, Any], before: dict[bytes, bytes | None], stream_times: dict[bytes, int]
    ) -> None:
        if not states or not self.downstream:
            self.task.records_out[self.name] += len(states)
            return
        cell_keys = list(states)
        olds = [before[key] for key in cell_keys]
        old_states = [None if old is None else load_state(old) for old in olds]
        after = self._results([states[key] for key in cell_keys])
        previous = self._results(old_states)
        times = np.array([states[key][0] for key in cell_keys], np.int64)
        reached = np.array([stream_times[key] for key in cell_keys], np.int64)
        self.emit(change(self._keys(cell_keys), after, previous, times, reached))

    def _results(self, states: list[Any]) -> Column:
        values = [None if state is None else plain(self._folder.result(state[1])) for state in states]
        return values if self._result_type is None else pa.array(values, self._result_type)

    def _keys(self, cell_keys: list[bytes]) -> Column:
        if self._window is None:
            return table_keys(pa.array(cell_keys, pa.binary()), None, None, self._key_type)
        keys = pa.array([key[:-8] for key in cell_keys], pa.binary())
        return table_keys(keys, _starts(cell_keys), self._window, self._key_type)

    def _expire(self, expiry: Expiry) -> None:
        assert self._window is not None
        cell_keys = expiry.closed()
        if not cell_keys:
            return
        before = self._session.read(self.name, cell_keys)
        rows = [(key, None, old) for key, old in zip(cell_keys, before, strict=True) if old is not None]
        self._session.write(self.name, rows)
        expiry.forget(cell_keys)
        if not rows or not self.downstream:
            return
        gone = [key for key, _, _ in rows]
        states = [load_state(old) for _, _, old in rows if old is not None]
        ends = _starts(gone) + self._window.size_ms + self._window.grace_ms
        nothing = self._results([None] * len(gone))
        times = np.array([state[0] for state in states], np.int64)
        chunk = change(self._keys(gone), nothing, self._results(states), times, ends)
        chunk.expired = True
        self.emit(chunk)


def greatest_of(keys: list[bytes], times: Ints) -> dict[bytes, int]:
    """The greatest time of each key."""
    found: dict[bytes, int] = {}
    for key, time in zip(keys, times.tolist(), strict=True):
        if time > found.get(key, time - 1):
            found[key] = time
    return found


def _starts(cell_keys: list[bytes]) -> Any:
    return np.array([time_of(key[-8:]) for key in cell_keys], np.int64)

"""The join of two tables by key, at work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from potok.kernels.aggregates import change
from potok.kernels.call import plain, python_rows
from potok.kernels.changes import same, settle
from potok.kernels.chunk import Chunk
from potok.kernels.dead_letters import Reason
from potok.kernels.expiry import NEVER
from potok.kernels.operator import Operator, Receiver, Task
from potok.kernels.shards import key_column
from potok.kernels.table_joiner import TableJoiner
from potok.records.keys import encode_keys
from potok.state.codec import dump_state, load_own_state
from potok.state.session import StateSession


@dataclass(slots=True)
class Sides:
    """The two rows of one key, and when each of them changed last."""

    left: Any = None
    right: Any = None
    left_time: int = NEVER
    right_time: int = NEVER
    stream_time: int = NEVER

    @classmethod
    def of(cls, data: bytes | None) -> Sides:
        return cls() if data is None else cls(*load_own_state(data))

    def put(self, side: int, value: Any, time: int, stream_time: int) -> None:
        if side == 0:
            self.left, self.left_time = value, time
        else:
            self.right, self.right_time = value, time
        self.stream_time = max(self.stream_time, stream_time)

    def to_bytes(self) -> bytes | None:
        if self.left is None and self.right is None:
            return None
        return dump_state((self.left, self.right, self.left_time, self.right_time))


class SideInput:
    """Takes the changes of one of the two tables of a join."""

    def __init__(self, join: Operator) -> None:
        self._join = join
        self._chunks: list[Chunk] = []

    def push(self, chunk: Chunk) -> None:
        if len(chunk):
            self._join.task.records_in[self._join.name] += len(chunk)
            self._chunks.append(chunk)

    def taken(self) -> list[Chunk]:
        chunks, self._chunks = self._chunks, []
        return chunks


class JoinTables(Operator):
    """Keeps both rows of each key; a change of either is a change of what they make together."""

    def __init__(
        self, name: str, task: Task, joiner: TableJoiner, key_type: pa.DataType | None, session: StateSession
    ) -> None:
        super().__init__(name, task)
        self._joiner, self._key_type, self._session = joiner, key_type, session
        self._sides = (SideInput(self), SideInput(self))
        self._table = f"{name}/sides"

    @property
    def state_tables(self) -> list[str]:
        return [self._table]

    def port(self, index: int) -> Receiver:
        return self._sides[index]

    def finish(self) -> None:
        chunks = [(number, chunk) for number, side in enumerate(self._sides) for chunk in side.taken()]
        if not chunks:
            return
        keys = sorted({key for _, chunk in chunks for key in encode_keys(chunk.key).to_pylist()})
        before = self._session.read(self._table, keys)
        held = {key: Sides.of(data) for key, data in zip(keys, before, strict=True)}
        for expired in (False, True):
            self._take([part for part in chunks if part[1].expired is expired], held, expired=expired)
        writes = [(key, held[key].to_bytes(), data) for key, data in zip(keys, before, strict=True)]
        self._session.write(self._table, [write for write in writes if write[1] != write[2]])

    def _take(self, chunks: list[tuple[int, Chunk]], held: dict[bytes, Sides], *, expired: bool) -> None:
        """Take changes in, and emit what becomes of the joined rows."""
        old: dict[bytes, tuple[Any, Any]] = {}
        for number in (0, 1):
            mine = [chunk for side, chunk in chunks if side == number]
            if not mine:
                continue
            keys, chunk = settle(mine)
            rows = zip(python_rows(chunk.value), chunk.timestamp.tolist(), chunk.stream_time.tolist(), strict=True)
            for key, row in zip(keys, rows, strict=True):
                sides = held[key]
                old.setdefault(key, (sides.left, sides.right))
                sides.put(number, plain(row[0]), row[1], row[2])
        if old:
            touched = sorted(old)
            self._emit_changes(touched, [old[key] for key in touched], [held[key] for key in touched], expired)

    def _emit_changes(self, keys: list[bytes], old: list[tuple[Any, Any]], new: list[Sides], expired: bool) -> None:
        column = key_column(pa.array(keys, pa.binary()), self._key_type)
        shown = python_rows(column)
        before, _ = self._joiner.rows(shown, [left for left, _ in old], [right for _, right in old])
        after, errors = self._joiner.rows(shown, [sides.left for sides in new], [sides.right for sides in new])
        times = np.array([max(sides.left_time, sides.right_time) for sides in new], np.int64)
        reached = np.array([sides.stream_time for sides in new], np.int64)
        if errors:
            pairs = [{"left": sides.left, "right": sides.right} for sides in new]
            self.task.dead_letters.add(change(column, pairs, None, times, reached), errors, self.name, Reason.ERROR)
        rows = np.array([row for row in range(len(keys)) if not same(before[row], after[row])], np.intp)
        if len(rows):
            made = change(column, self._joiner.column(after), self._joiner.column(before), times, reached).take(rows)
            made.offset, made.expired = np.arange(len(rows), dtype=np.int64), expired
            self.emit(made)

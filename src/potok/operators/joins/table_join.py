"""The join of two tables by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from potok.operators.aggregates.aggregates import change
from potok.operators.cells.timer_index import Timers
from potok.operators.core.call import plain, python_rows
from potok.operators.core.chunk import NO_INPUT_PARTITION, Chunk, cause_of, headers_of
from potok.operators.core.dead_letters import Reason
from potok.operators.core.operator import Operator, Receiver, Task
from potok.operators.core.unserializable import data_changes
from potok.operators.exchange.shards import key_column
from potok.operators.joins.table_joiner import TableJoiner, with_rows
from potok.operators.tables.changes import same, settle
from potok.operators.windows.expiry import NEVER
from potok.records.keys import encode_keys
from potok.state.codec import dump_state, load_state
from potok.state.session import StateSession
from potok.topology.nodes import Window
from potok.topology.nodes.joins import JoinKind


@dataclass(slots=True)
class Sides:
    """The two rows of one key, and when each of them changed last; the last change of this batch was caused by the
    record at `cause`.
    """

    left: Any = None
    right: Any = None
    left_time: int = NEVER
    right_time: int = NEVER
    stream_time: int = NEVER
    cause: tuple[int, int] = (NO_INPUT_PARTITION, -1)
    headers: Any = None
    emits: bool = False
    """Whether an update of this batch is one of the joined row."""

    @classmethod
    def of(cls, data: bytes | None) -> Sides:
        return cls() if data is None else cls(*load_state(data))

    def put(self, side: int, value: Any, time: int, stream_time: int, cause: tuple[int, int]) -> None:
        if side == 0:
            self.left, self.left_time = value, time
        else:
            self.right, self.right_time = value, time
        self.stream_time, self.cause = max(self.stream_time, stream_time), cause

    def update(self, side: int, value: Any, how: JoinKind, headers: Any) -> None:
        """Note whether Kafka Streams would emit the next update, even if the joined row does not change: not if the
        other side is required and missing, nor for a tombstone if there is no row.
        """
        other, own = (self.right, self.left) if side == 0 else (self.left, self.right)
        needs_other = how is JoinKind.INNER or (how is JoinKind.LEFT and side == 1)
        self.emits |= other is not None or (not needs_other and (own is not None or value is not None))
        self.headers = headers

    def to_bytes(self) -> bytes | None:
        if self.left is None and self.right is None:
            return None
        return dump_state((self.left, self.right, self.left_time, self.right_time))


def drop_ms(window: Window, start_ms: int, end_ms: int) -> int:
    """Return the watermark at which a window is dropped."""
    return max(end_ms + window.retention_ms, int(window.closes_ms(start_ms, end_ms)))


class SideInput:
    """Receive the changes of one of the two tables of a join."""

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
    """Store both rows of each key; a change of either is a change of the joined row.

    Joined windows are dropped by the join's own watermark, the lesser of both tables': when it has passed the end and
    the retention of a window, no accepted record of either side could reach it. If one table drops its row before
    that, by its own watermark, the result does not change.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        joiner: TableJoiner,
        key_type: pa.DataType | None,
        session: StateSession,
        window: Window | None,
        watermark_ms: int,
        *,
        every_update: bool = False,
    ) -> None:
        super().__init__(name, task)
        self._joiner, self._key_type, self._session = joiner, key_type, session
        self._every_update = every_update
        self._window, self._watermark_ms = window, watermark_ms
        self._sides = (SideInput(self), SideInput(self))
        self._table = f"{name}/sides"
        self._timers = Timers(f"{name}/due", session)

    @property
    def state_tables(self) -> list[str]:
        return [self._table] if self._window is None else [self._table, self._timers.table]

    def next_due(self) -> int | None:
        return None if self._window is None else self._timers.next_due()

    def port(self, index: int) -> Receiver:
        return self._sides[index]

    def finish(self) -> None:
        taken = [[chunk for chunk in side.taken() if not chunk.expired] for side in self._sides]
        over = [] if self._window is None else self._timers.due(self._watermark_ms)
        touched = {key for chunks in taken for chunk in chunks for key in encode_keys(chunk.key).to_pylist()}
        keys = sorted({*touched, *(key for _, key in over)})
        if not keys:
            return
        before = self._session.read(self._table, keys)
        held = {key: Sides.of(data) for key, data in zip(keys, before, strict=True)}
        self._take(taken, held)
        if self._window is not None:
            self._close(self._window, dict(zip(keys, before, strict=True)), held)
        writes = [(key, held[key].to_bytes(), data) for key, data in zip(keys, before, strict=True)]
        self._session.write(self._table, [write for write in writes if write[1] != write[2]])

    def _close(self, window: Window, before: dict[bytes, bytes | None], held: dict[bytes, Sides]) -> None:
        """Drop expired rows, including those of this batch, and note when the others will expire."""
        keys = list(held)
        decoded_keys = python_rows(key_column(pa.array(keys, pa.binary()), self._key_type))
        ends = {
            key: drop_ms(window, bounds["start"], bounds["end"]) for key, bounds in zip(keys, decoded_keys, strict=True)
        }
        over = [key for key in keys if ends[key] <= self._watermark_ms]
        if over:
            old = [(held[key].left, held[key].right) for key in over]
            for key in over:
                sides = held[key]
                held[key] = Sides(None, None, sides.left_time, sides.right_time, ends[key])
            self._emit_changes(over, old, [held[key] for key in over], expired=True)
        self._timers.change(
            [(ends[key], key) for key in keys if held[key].to_bytes() is not None],
            [(ends[key], key) for key in keys if before[key] is not None],
        )

    def _take(self, taken: list[list[Chunk]], held: dict[bytes, Sides]) -> None:
        """Apply changes, and emit the changes of the joined rows."""
        old: dict[bytes, tuple[Any, Any]] = {}
        for number, chunks in enumerate(taken):
            if not chunks:
                continue
            keys, chunk = settle(chunks)
            chunk = data_changes(self, chunk)
            times, causes = (chunk.timestamp.tolist(), chunk.stream_time.tolist()), map(tuple, cause_of(chunk).tolist())
            headers = [None] * len(chunk) if chunk.headers is None else chunk.headers.to_pylist()
            changed = zip(keys, python_rows(chunk.value), *times, causes, headers, strict=True)
            for key, value, time, stream_time, cause, given in changed:
                sides = held[key]
                old.setdefault(key, (sides.left, sides.right))
                sides.update(number, plain(value), self._joiner.how, given)
                sides.put(number, plain(value), time, stream_time, cause)
        if old:
            touched = sorted(old)
            self._emit_changes(touched, [old[key] for key in touched], [held[key] for key in touched], expired=False)

    def _emit_changes(self, keys: list[bytes], old: list[tuple[Any, Any]], new: list[Sides], *, expired: bool) -> None:
        column = key_column(pa.array(keys, pa.binary()), self._key_type)
        decoded_keys = python_rows(column)
        before, _ = self._joiner.rows(decoded_keys, [left for left, _ in old], [right for _, right in old])
        after, errors = self._joiner.rows(decoded_keys, [sides.left for sides in new], [sides.right for sides in new])
        times = np.array([max(sides.left_time, sides.right_time) for sides in new], np.int64)
        reached = np.array([sides.stream_time for sides in new], np.int64)
        cause = np.array([sides.cause for sides in new], np.int64).reshape(-1, 2)
        if errors:
            pairs = [{"left": sides.left, "right": sides.right} for sides in new]
            failed = change(column, pairs, None, times, reached, cause)
            self.task.dead_letters.add(failed, with_rows(errors, pairs), self.name, Reason.ERROR)
        every = [self._every_update and sides.emits for sides in new]
        rows = np.array([row for row in range(len(keys)) if every[row] or not same(before[row], after[row])], np.intp)
        if len(rows):
            columns = self._joiner.column(after), self._joiner.column(before)
            headers = headers_of([sides.headers for sides in new])
            made = change(column, *columns, times, reached, cause, headers).take(rows)
            made.offset, made.expired = np.arange(len(rows), dtype=np.int64), expired
            self.emit(made)

"""Suppressed changes of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from potok.operators.aggregates.aggregates import change
from potok.operators.cells.timer_index import Timers
from potok.operators.core.call import plain, python_rows
from potok.operators.core.chunk import Chunk, Column, Ints
from potok.operators.core.operator import Operator, Task
from potok.operators.core.unserializable import data_changes
from potok.operators.exchange.shards import key_column
from potok.records.keys import encode_keys
from potok.state.codec import dump_state, load_state
from potok.state.session import StateSession
from potok.topology.nodes import Window


@dataclass(slots=True)
class Row:
    """The state of a row: the value that was emitted last and, until `due`, the one that is held back."""

    through: Any = None
    due: int | None = None
    held: Any = None
    timestamp: int = 0

    @classmethod
    def of(cls, data: bytes | None) -> Row:
        if data is None:
            return cls()
        through, due, held, timestamp = load_state(data)
        return cls(through, due, held, timestamp)

    def to_bytes(self) -> bytes | None:
        if self.due is None and self.through is None:
            return None
        return dump_state((self.through, self.due, self.held, self.timestamp))


class Suppress(Operator):
    """Hold back the changes of each row until its window closes or, with `every_ms`, for that long after the first."""

    def __init__(
        self,
        name: str,
        task: Task,
        window: Window | None,
        every_ms: int | None,
        types: tuple[pa.DataType | None, pa.DataType | None],
        session: StateSession,
        watermark_ms: int,
    ) -> None:
        super().__init__(name, task)
        self._window, self._every_ms, self._session, self._watermark_ms = window, every_ms, session, watermark_ms
        self._key_type, self._value_type = types
        self._chunks: list[Chunk] = []
        self._timers = Timers(f"{name}/due", session)

    @property
    def state_tables(self) -> list[str]:
        return [self.name, self._timers.table]

    def next_due(self) -> int | None:
        return self._timers.next_due()

    def process(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)

    def finish(self) -> None:
        scanned = self._timers.due(self._watermark_ms)
        chunks, self._chunks = self._chunks, []
        keys = [encode_keys(chunk.key).to_pylist() for chunk in chunks]
        touched = list(dict.fromkeys([*(key for _, key in scanned), *(key for part in keys for key in part)]))
        before = self._session.read(self.name, touched)
        rows = {key: Row.of(data) for key, data in zip(touched, before, strict=True)}
        # Also remove an entry that its row does not know: it would stay due.
        went = [*scanned, *((row.due, key) for key, row in rows.items() if row.due is not None)]
        for chunk, part in zip(chunks, keys, strict=True):
            if not chunk.expired:
                self._hold(chunk, part, rows)
        gone = {key for chunk, part in zip(chunks, keys, strict=True) if chunk.expired for key in part}
        self._let_through(rows, gone)
        self._write(rows, dict(zip(touched, before, strict=True)), went)
        for chunk in chunks:
            if chunk.expired:
                self.emit(chunk)

    def _hold(self, chunk: Chunk, keys: list[bytes], rows: dict[bytes, Row]) -> None:
        dues = self._dues(chunk).tolist()
        values = python_rows(data_changes(self, chunk).value)
        for key, value, due, at in zip(keys, values, dues, chunk.timestamp.tolist(), strict=True):
            row = rows[key]
            row.held, row.timestamp = plain(value), at
            row.due = due if row.due is None else min(row.due, due)
            if row.held is None and row.through is None:
                row.due = None  # created and deleted while it was held back

    def _dues(self, chunk: Chunk) -> Ints:
        if self._every_ms is not None:
            return chunk.stream_time + self._every_ms
        assert self._window is not None
        if isinstance(chunk.key, list):
            starts, ends = (np.array([key[name] for key in chunk.key], np.int64) for name in ("start", "end"))
        else:
            starts, ends = chunk.key.field(1).to_numpy(), chunk.key.field(2).to_numpy()
        dues: Ints = self._window.closes_ms(starts, ends)
        return dues

    def _let_through(self, rows: dict[bytes, Row], gone: set[bytes]) -> None:
        """Emit what is due, in time order; a row that is dropped emits what it holds.

        The watermark of later steps is held back by the longest time that a change is held. So the result of a window
        carries its own time as stream time, and a change that was held back the stream time at which it was first
        held.
        """
        due = [
            (row.due, key)
            for key, row in rows.items()
            if row.due is not None and (row.due <= self._watermark_ms or key in gone)
        ]
        due.sort()
        changed = [(key, rows[key], at) for at, key in due]
        if changed:
            after, earlier = ([getattr(row, name) for _, row, _ in changed] for name in ("held", "through"))
            times, reached = (
                np.array(part, np.int64)
                for part in ([row.timestamp for _, row, _ in changed], [self._reached(*one[1:]) for one in changed])
            )
            decoded_keys = key_column(pa.array([key for key, *_ in changed], pa.binary()), self._key_type)
            self.emit(change(decoded_keys, self._column(after), self._column(earlier), times, reached))
        for _, row, _ in changed:
            row.through, row.held, row.due = row.held, None, None
        for key in gone:
            rows[key].through = None
        if self._every_ms is None:
            for _, row, _ in changed:
                row.through = None  # a window closes once: nothing needs to be remembered

    def _reached(self, row: Row, due: int) -> int:
        return row.timestamp if self._every_ms is None else due - self._every_ms

    def _column(self, values: list[Any]) -> Column:
        return values if self._value_type is None else pa.array(values, self._value_type)

    def _write(self, rows: dict[bytes, Row], before: dict[bytes, bytes | None], went: list[tuple[int, bytes]]) -> None:
        cells = [(key, row.to_bytes(), before[key]) for key, row in rows.items()]
        self._session.write(self.name, [cell for cell in cells if cell[1] != cell[2]])
        came = [(row.due, key) for key, row in rows.items() if row.due is not None]
        self._timers.change(came, went)

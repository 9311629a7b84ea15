"""Tables whose rows are deleted when they have not changed for long enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from potok.operators.aggregates.accumulators import Rank
from potok.operators.aggregates.aggregates import change
from potok.operators.cells.cell_codec import decode_row, encode_row
from potok.operators.cells.timer_index import Timers
from potok.operators.core.call import plain, python_rows
from potok.operators.core.chunk import Chunk, Column, concat, from_wire, in_order
from potok.operators.core.dead_letters import InputPartition
from potok.operators.core.operator import Operator, Task
from potok.operators.core.processing_order import ranks_of
from potok.operators.core.unserializable import data_records
from potok.operators.exchange.shards import key_column
from potok.operators.windows.expiry import NEVER
from potok.state.session import StateSession
from potok.topology.nodes.retention import Lifetime


@dataclass(slots=True)
class Row:
    """A row, the event time of its last change, when its time to live started (then, or when that was read), and the
    stream time of that change.

    `rank` is set in tables by event time, which also remember deletes, so that older records are rejected.
    """

    value: Any
    time: int
    since: int
    reached: int
    rank: Rank | None = None

    @classmethod
    def of(cls, data: bytes | None) -> Row | None:
        if data is None:
            return None
        time, decoded, since, ranked, reached = decode_row(data)
        if not ranked:
            return cls(decoded, time, since, reached)
        ranked_at, topic, partition, offset, value = decoded
        return cls(value, time, since, reached, (ranked_at, (topic, partition, offset)))

    def to_bytes(self) -> bytes | None:
        if self.rank is not None:
            ranked = [self.rank[0], *self.rank[1], self.value]
            return encode_row(self.time, ranked, self.since, True, self.reached)
        return None if self.value is None else encode_row(self.time, self.value, self.since, False, self.reached)


class KeepWithTimeToLive(Operator):
    """Keep the last value of each key, by position or by event time, until its time to live is over.

    The watermark W never passes what may still arrive: a later record has a stream time of at least W. It may create
    a deleted row again, which then lives by its own time: so the final result is the last row of each key, if the
    final watermark is below its time + ttl, however records are divided into batches. By event time, what is
    forgotten with a deleted row would only have rejected older records, whose time to live is over too.

    A delete carries the time at which the row expired, or its stream time if that was later: a row may be expired
    when it arrives. So it carries the same times in whatever batch it is made, and none that a watermark has passed
    which closed a window. A delete by processing time carries the current stream time.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        lifetime: Lifetime,
        types: tuple[pa.DataType | None, pa.DataType | None],
        session: StateSession,
        watermark_ms: int,
        input_partitions: list[InputPartition],
        *,
        by_time: bool,
    ) -> None:
        super().__init__(name, task)
        assert lifetime.ttl_ms is not None
        self._ttl_ms, self._by_wall = lifetime.ttl_ms, lifetime.by_processing_time
        self._session, self._input_partitions, self._by_time = session, input_partitions, by_time
        self._key_type, self._value_type = types
        self._now_ms, self._watermark_ms = task.processing_time_ms if self._by_wall else watermark_ms, watermark_ms
        self._timers = Timers(f"{name}/since", session)
        self._chunks: list[Chunk] = []

    def receive(self, payload: bytes) -> None:
        self._chunks.append(from_wire(payload))

    @property
    def state_tables(self) -> list[str]:
        return [self.name, self._timers.table]

    def next_due(self) -> int | None:
        return None if self._by_wall else self._next()

    def next_timer(self) -> int | None:
        return self._next() if self._by_wall else None

    def _next(self) -> int | None:
        first = self._timers.next_due()
        return None if first is None else first + self._ttl_ms

    def finish(self) -> None:
        chunk = data_records(self, in_order(concat(self._chunks)), self._key_type) if self._chunks else None
        self._chunks = []
        over = [key for _, key in self._timers.due(self._now_ms - self._ttl_ms)] if self._now_ms > NEVER else []
        came = {} if chunk is None else self._last_rows(chunk)
        keys = sorted({*came, *over})
        if not keys:
            return
        before = self._session.read(self.name, keys)
        old = [Row.of(data) for data in before]
        new = [self._after(row, came.get(key)) for key, row in zip(keys, old, strict=True)]
        cells = [None if row is None or self._is_over(row) else row.to_bytes() for row in new]
        writes = [(key, cell, data) for key, cell, data in zip(keys, cells, before, strict=True)]
        self._session.write(self.name, [write for write in writes if write[1] != write[2]])
        self._timers.change(
            [(row.since, key) for key, row, cell in zip(keys, new, cells, strict=True) if row is not None and cell],
            [(row.since, key) for key, row in zip(keys, old, strict=True) if row is not None],
        )
        self._emit_changes(keys, old, new)

    def _last_rows(self, chunk: Chunk) -> dict[bytes, Row]:
        """Return the last record of each key in this batch: by position or by rank."""
        assert isinstance(chunk.key, pa.Array)
        values = [plain(value) for value in python_rows(chunk.value)]
        ranks = ranks_of(chunk, self._input_partitions) if self._by_time else [None] * len(chunk)
        last: dict[bytes, Row] = {}
        times = chunk.timestamp.tolist(), chunk.stream_time.tolist()
        for key, value, time, reached, rank in zip(chunk.key.to_pylist(), values, *times, ranks, strict=True):
            row = Row(value, time, self._now_ms if self._by_wall else time, reached, rank)
            last[key] = self._later(last.get(key), row)
        return last

    def _later(self, old: Row | None, new: Row) -> Row:
        return old if old is not None and old.rank is not None and new.rank is not None and new.rank < old.rank else new

    def _after(self, old: Row | None, came: Row | None) -> Row | None:
        return old if came is None else self._later(old, came)

    def _is_over(self, row: Row) -> bool:
        return row.since + self._ttl_ms <= self._now_ms

    def _end_of(self, row: Row) -> tuple[int, int]:
        """Return the event time and the stream time at which a row is deleted."""
        if self._by_wall:
            return row.time, max(row.reached, self._watermark_ms)
        return row.time + self._ttl_ms, max(row.reached, row.time + self._ttl_ms)

    def _emit_changes(self, keys: list[bytes], old: list[Row | None], new: list[Row | None]) -> None:
        rows: list[tuple[bytes, Any, Any, int, int]] = []
        for key, was, row in zip(keys, old, new, strict=True):
            assert row is not None
            earlier = None if was is None else was.value
            if self._is_over(row):
                rows.append((key, None, earlier, *self._end_of(row)))
            elif row is not was:
                rows.append((key, row.value, earlier, row.time, row.reached))
        rows = [row for row in rows if row[1] is not None or row[2] is not None]
        if rows:
            decoded = key_column(pa.array([row[0] for row in rows], pa.binary()), self._key_type)
            after, before = self._column([row[1] for row in rows]), self._column([row[2] for row in rows])
            times, stream_times = (np.array([row[part] for row in rows], np.int64) for part in (3, 4))
            self.emit(change(decoded, after, before, times, stream_times))

    def _column(self, values: list[Any]) -> Column:
        return values if self._value_type is None else pa.array(values, self._value_type)

"""What a listener hands over: some records that arrived together, and whom to notify when they are durable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from potok.log.broker import LOG_SCHEMA
from potok.records.log_record import LogRecord
from potok.sources.spool import Spilled

COLUMNS = pa.schema([field for field in LOG_SCHEMA if field.name != "ingested"])
_HEADERS = LOG_SCHEMA.field("headers").type

Done = Callable[[str | None], None]
"""Called once, from any thread: with None once the records are durable, or with the reason why they are lost."""


@dataclass(slots=True, eq=False)
class Arrival:
    """Records that arrived together: acknowledged together, and dropped together when the buffer is full."""

    records: Sequence[LogRecord] | pa.RecordBatch | Spilled
    size: int
    """Their bytes."""

    done: Done | None = None
    whole: bool = False
    """Whether it is lost as a whole when the topic does not accept one of its records."""

    at_s: float = field(default_factory=time.monotonic)

    def __len__(self) -> int:
        return len(self.records)

    def finish(self, problem: str | None) -> None:
        if self.done is not None:
            self.done(problem)

    @classmethod
    def of(cls, records: Sequence[LogRecord], done: Done | None = None, *, whole: bool = False) -> Arrival:
        return cls(records, sum(map(size_of, records)), done, whole)

    def columns(self) -> pa.RecordBatch:
        """Return the records as columns."""
        records = self.records
        assert not isinstance(records, Spilled), "read from the spool when it was taken"
        return records if isinstance(records, pa.RecordBatch) else _columns_of(records)

    def leave_out(self, rows: Collection[int]) -> None:
        """Remove some records."""
        assert not isinstance(self.records, Spilled), "read from the spool when it was taken"
        kept = [row for row in range(len(self)) if row not in rows]
        if isinstance(self.records, pa.RecordBatch):
            self.records = self.records.take(pa.array(kept, pa.int64()))
        else:
            self.records = [self.records[row] for row in kept]


def after(count: int, done: Done) -> Done:
    """Return what is called `count` times, and then calls `done` with the first problem, if there was one."""
    lock, found = threading.Lock(), list[str | None]()

    def one(problem: str | None) -> None:
        with lock:
            found.append(problem)
            is_last = len(found) == count
        if is_last:
            done(next((each for each in found if each is not None), None))

    return one


def columns_of(arrivals: Sequence[Arrival]) -> pa.RecordBatch:
    """Return the records of arrivals, in order, as one batch. Rows are converted together: a conversion of its own for
    each request takes four times as long."""
    batches: list[pa.RecordBatch] = []
    rows: list[LogRecord] = []
    for arrival in arrivals:
        if isinstance(arrival.records, pa.RecordBatch | Spilled):
            batches += [_columns_of(rows)] if rows else []
            rows = []
            batches.append(arrival.columns())
        else:
            rows += arrival.records
    if rows or not batches:
        batches.append(_columns_of(rows))
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _columns_of(records: Sequence[LogRecord]) -> pa.RecordBatch:
    if any(record.headers for record in records):
        named = [[{"name": n, "value": v} for n, v in record.headers] or None for record in records]
        headers = pa.array(named, _HEADERS)
    else:
        headers = pa.nulls(len(records), _HEADERS)
    columns = [
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array([record.timestamp_ms for record in records], pa.int64()),
        headers,
    ]
    return pa.record_batch(columns, schema=COLUMNS)


def size_of(record: LogRecord) -> int:
    size = len(record.key or b"") + len(record.value or b"")
    return size + sum(len(n) + len(v or b"") for n, v in record.headers) if record.headers else size

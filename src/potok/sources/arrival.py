"""What a listener hands over: some records that arrived together, and whom to notify when they are durable."""

from __future__ import annotations

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
        if isinstance(records, pa.RecordBatch):
            return records
        headers = [[{"name": n, "value": v} for n, v in record.headers] or None for record in records]
        columns = [
            pa.array([record.key for record in records], pa.binary()),
            pa.array([record.value for record in records], pa.binary()),
            pa.array([record.timestamp_ms for record in records], pa.int64()),
            pa.array(headers, _HEADERS),
        ]
        return pa.record_batch(columns, schema=COLUMNS)

    def leave_out(self, rows: Collection[int]) -> None:
        """Remove some records."""
        assert not isinstance(self.records, Spilled), "read from the spool when it was taken"
        kept = [row for row in range(len(self)) if row not in rows]
        if isinstance(self.records, pa.RecordBatch):
            self.records = self.records.take(pa.array(kept, pa.int64()))
        else:
            self.records = [self.records[row] for row in kept]


def size_of(record: LogRecord) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers

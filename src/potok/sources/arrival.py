"""What a listener hands over: some records that arrived together, and whom to tell when they are durable."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from potok.records.log_record import LogRecord

Done = Callable[[str | None], None]
"""Called once, from any thread: with None once the records are durable, or with the reason why they are lost."""


@dataclass(slots=True, eq=False)
class Arrival:
    """Records that arrived together: acknowledged together, and dropped together when the buffer is full."""

    records: Sequence[LogRecord] | pa.RecordBatch
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

    def leave_out(self, rows: Collection[int]) -> None:
        """Remove some records."""
        kept = [row for row in range(len(self)) if row not in rows]
        if isinstance(self.records, pa.RecordBatch):
            self.records = self.records.take(pa.array(kept, pa.int64()))
        else:
            self.records = [self.records[row] for row in kept]


def size_of(record: LogRecord) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers

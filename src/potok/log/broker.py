"""The one interface to a log of records: topics, partitions, offsets, and the commit point of a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from potok.records.log_record import LogRecord

HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))

LOG_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("ingested", pa.int64()),
        ("headers", HEADERS),
    ]
)
"""Times are milliseconds since 1970. `headers` is null for a record that has none."""

READ_SCHEMA = LOG_SCHEMA.append(pa.field("offset", pa.int64()))

DEFAULT_SEGMENT_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """How a topic's segments are cut and how long they are kept (None: for ever)."""

    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    retention_ms: int | None = None
    retention_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    partition: int
    start_offset: int
    end_offset: int
    bytes: int
    segments: int


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """`topic_id` is new each time a topic is created, so that a topic deleted and created again is noticed."""

    name: str
    topic_id: str
    partitions: tuple[PartitionDescription, ...]
    config: TopicConfig
    created_at_ms: int

    @property
    def records(self) -> int:
        return sum(part.end_offset - part.start_offset for part in self.partitions)


@dataclass(frozen=True, slots=True)
class AppendResult:
    """Where the records of one append landed: offsets `first_offset` to `first_offset + count`."""

    partition: int
    first_offset: int
    count: int


@dataclass(frozen=True, slots=True)
class Staged:
    """Output of a task, encoded and durable but not visible; it becomes visible by `Broker.publish`. Picklable."""

    topic: str
    partition: int
    count: int
    size: int


class Broker(ABC):
    """A log. Every method may be called from any thread; a broker can be pickled and opens itself again."""

    url: str
    max_record_bytes: int

    @abstractmethod
    def topics(self) -> list[str]: ...

    @abstractmethod
    def has_topic(self, name: str) -> bool: ...

    @abstractmethod
    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        segment_bytes: int = DEFAULT_SEGMENT_BYTES,
        retention_ms: int | None = None,
        retention_bytes: int | None = None,
        exist_ok: bool = False,
    ) -> None:
        """Create a topic.

        Args:
            segment_bytes: A segment that has reached this size is closed and a new one begun.
            retention_ms: Segments whose last record was ingested longer ago are deleted.
            retention_bytes: The oldest segments of a partition over this size are deleted.
            exist_ok: Leave a topic that exists already as it is.
        """

    @abstractmethod
    def delete_topic(self, name: str) -> None: ...

    @abstractmethod
    def describe_topic(self, name: str) -> TopicDescription: ...

    @abstractmethod
    def partitions(self, topic: str) -> int: ...

    @abstractmethod
    def start_offsets(self, topic: str) -> dict[int, int]: ...

    @abstractmethod
    def end_offsets(self, topic: str) -> dict[int, int]: ...

    @abstractmethod
    def end_offsets_of(self, topics: Sequence[str]) -> dict[str, dict[int, int]]:
        """The ends of several topics as of one instant; cheap enough to poll."""

    @abstractmethod
    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """The first offset whose timestamp is at or after `timestamp_ms`; the end offset where there is none."""

    @abstractmethod
    def append(
        self, topic: str, batch: pa.RecordBatch | Sequence[LogRecord], partition: int | None = None
    ) -> list[AppendResult]:
        """Append records; durable when it returns, and visible all at once.

        Without `partition`, a record goes to the partition of its key by Kafka's default partitioner, and
        records without a key are spread. `ingested` is stamped by the log; a timestamp that is null or -1 becomes the
        present time. Only the columns of LOG_SCHEMA count, and only `value` must be there.
        """

    @abstractmethod
    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The records of offsets `start` to `end` (not included) as batches of READ_SCHEMA, in order."""

    @abstractmethod
    def stage(self, directory: Path, topic: str, partition: int, batch: pa.RecordBatch) -> Staged:
        """Encode output for `publish`, in any process. What is large is written to a file in `directory`."""

    @abstractmethod
    def publish(
        self, staged: Sequence[Staged], marks: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}
    ) -> None:
        """The commit point: append all of `staged`, in order, and set `marks`, in one transaction.

        Args:
            marks: New values; None deletes a mark.
            expect: What these marks must hold now (None: be absent); otherwise `MarkChanged` is raised
                and nothing is visible.
        """

    @abstractmethod
    def mark(self, name: str) -> bytes | None: ...

    @abstractmethod
    def marks(self, prefix: str) -> dict[str, bytes]: ...

    @abstractmethod
    def set_marks(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None:
        """Set or delete (None) marks in one transaction, if those in `expect` hold what they are expected to."""

    @abstractmethod
    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The offsets that a consumer group goes on from; empty where it has committed none."""

    @abstractmethod
    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None: ...

    @abstractmethod
    def set_protected(self, owner: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Say from which offsets on `owner` needs the records, so that retention keeps them; replaces what it said."""

    @abstractmethod
    def enforce_retention(
        self, topic: str | None = None, protect: Mapping[tuple[str, int], int] = {}
    ) -> dict[tuple[str, int], int]:
        """Delete whole old segments of a topic, or of all; returns the new start offsets of partitions that shrank."""

    @abstractmethod
    def close(self) -> None: ...

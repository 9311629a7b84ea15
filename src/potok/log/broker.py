"""The one interface to a log of records: topics, partitions, offsets, and the commit point of a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from potok.log.groups.membership import ConsumerGroups
from potok.log.maintenance import COMPACT, DAY_MS, DELETE, TopicMaintenance
from potok.metadata.metadata_store import MetadataStore
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
    """How a topic's segments are cut and how long they are kept (None: for ever). See `Broker.create_topic`."""

    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    retention_ms: int | None = None
    retention_bytes: int | None = None
    cleanup_policy: str = DELETE
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    archive: str | None = None

    @property
    def compacted(self) -> bool:
        return COMPACT in self.cleanup_policy

    @property
    def expires(self) -> bool:
        """Whether whole segments go when they are too old or too many."""
        has_limit = self.retention_ms is not None or self.retention_bytes is not None
        return has_limit and DELETE in self.cleanup_policy


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """`bytes` and `segments` are -1 where the log does not tell."""

    partition: int
    start_offset: int
    end_offset: int
    bytes: int
    segments: int
    removed: int = 0
    """How many offsets in between hold no record, because of compaction or transaction markers."""
    sealed_bytes: int = 0
    dirty_bytes: int = 0
    """Of the sealed segments, what compaction has not been over yet."""
    earliest_offset: int | None = None
    """Where the archive begins; None where there is none."""
    exact: bool = True
    """Whether `records` is exact, not only an upper bound."""

    @property
    def records(self) -> int:
        return self.end_offset - self.start_offset - self.removed


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """`topic_id` is new each time a topic is created, so that a topic deleted and created again is noticed.

    `created_at_ms` is -1 where the log does not tell.
    """

    name: str
    topic_id: str
    partitions: tuple[PartitionDescription, ...]
    config: TopicConfig
    created_at_ms: int

    @property
    def records(self) -> int:
        return sum(part.records for part in self.partitions)

    @property
    def exact(self) -> bool:
        return all(part.exact for part in self.partitions)

    @property
    def dirty_ratio(self) -> float:
        """The part of the sealed bytes that compaction has not been over yet."""
        sealed = sum(part.sealed_bytes for part in self.partitions)
        return sum(part.dirty_bytes for part in self.partitions) / sealed if sealed else 0.0


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


@dataclass(frozen=True, slots=True)
class PublishedBatch:
    """Which batch of which query `Broker.publish` makes visible, and up to where in its sources it has read."""

    query: str
    number: int
    offsets: Mapping[str, Mapping[int, int]]


class Broker(MetadataStore, ConsumerGroups, TopicMaintenance, ABC):
    """A log. Every method may be called from any thread; a broker can be pickled and opens itself again."""

    url: str
    directory: Path
    """Where queries keep what is theirs on this machine."""
    max_record_bytes: int
    poll_interval_s: float
    """How long whoever waits for records should sleep between two looks at the ends."""
    commits_together: bool = False
    """Whether one `publish` may hold the batches of several queries."""

    @property
    def home_url(self) -> str | None:
        """The server that keeps the metadata; None where it lies in `directory`."""
        return None

    def connector_options(self) -> dict[str, str]:
        """What Spark's own connector to this log is told; empty where it has none."""
        return {}

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
        cleanup_policy: str = DELETE,
        delete_retention_ms: int = DAY_MS,
        min_compaction_lag_ms: int = 0,
        archive: str | Path | None = None,
        exist_ok: bool = False,
    ) -> None:
        """Create a topic.

        Args:
            segment_bytes: A segment that has reached this size is closed and a new one begun.
            retention_ms: Segments whose last record was ingested longer ago are deleted.
            retention_bytes: The oldest segments of a partition over this size are deleted.
            cleanup_policy: `delete` keeps to the two limits above; `compact` keeps the last record of each key, for
                ever, and takes no record without a key; `compact,delete` does both.
            delete_retention_ms: How long compaction keeps a tombstone (a null value) after it has first seen it.
            min_compaction_lag_ms: Records are not compacted before they are so old.
            archive: A directory to which old segments are moved, instead of being deleted.
            exist_ok: Leave a topic that exists already as it is.
        """

    @abstractmethod
    def delete_topic(self, name: str) -> None: ...

    @abstractmethod
    def describe_topic(self, name: str) -> TopicDescription: ...

    def describe_topics(self, names: Sequence[str]) -> list[TopicDescription]:
        """Describe topics for display: where the log has only upper bounds of the numbers of records, count them if
        that is quick."""
        return [self.describe_topic(name) for name in names]

    @abstractmethod
    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The `topic_id` of each topic; cheap enough to ask before every batch."""

    @abstractmethod
    def partitions(self, topic: str) -> int: ...

    @abstractmethod
    def start_offsets(self, topic: str) -> dict[int, int]: ...

    def earliest_offsets(self, topic: str) -> dict[int, int]:
        """From where on `read` has the records: the archive's start, or the log's where nothing is archived."""
        return self.start_offsets(topic)

    @abstractmethod
    def end_offsets(self, topic: str) -> dict[int, int]: ...

    @abstractmethod
    def end_offsets_of(self, topics: Sequence[str]) -> dict[str, dict[int, int]]:
        """The ends of several topics as of one instant; cheap enough to poll."""

    @abstractmethod
    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """The first offset whose timestamp is at or after `timestamp_ms`; the end offset where there is none.

        The archive is not looked at.
        """

    def offsets_at(self, partitions: Sequence[tuple[str, int]], timestamp_ms: int) -> dict[tuple[str, int], int]:
        """Return `offset_at` for several (topic, partition) pairs."""
        return {(topic, part): self.offset_at(topic, part, timestamp_ms) for topic, part in partitions}

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
        """The records of offsets `start` to `end` (not included) as batches of READ_SCHEMA, in order.

        The range may begin in the archive. Offsets whose records compaction has removed are left out, so that fewer
        records than offsets may come, or none.
        """

    @abstractmethod
    def stage(self, directory: Path | None, topic: str, partition: int, batch: pa.RecordBatch) -> Staged:
        """Encode output for `publish`, in any process. What is large is written to a file in `directory`, if one is
        given: whoever publishes must see it."""

    @abstractmethod
    def unfit(self, topic: str, batch: pa.RecordBatch) -> dict[int, str]:
        """The rows of a batch of LOG_SCHEMA that the topic would refuse, each with the reason; cheap where there are
        none. Whoever cannot do without the others asks before `stage`, which takes all of a batch or nothing."""

    @abstractmethod
    def publish(
        self,
        staged: Sequence[Staged],
        metadata_keys: Mapping[str, bytes | None],
        expect: Mapping[str, bytes | None] = {},
        batch: PublishedBatch | None = None,
    ) -> None:
        """The commit point: append all of `staged`, in order, and set `metadata_keys`, in one transaction.

        Args:
            marks: New values; None deletes a mark.
            expect: What these marks must hold now (None: be absent); otherwise `MetadataConflict` is raised
                and nothing is visible.
            batch: What is published. A log that keeps its marks elsewhere needs it to notice, after a crash between
                the two, that this output is visible already.
        """

    @abstractmethod
    def append_staged(self, staged: Sequence[Staged]) -> None:
        """Append what was staged, in order, in no transaction with any mark; durable when it returns.

        For output that may come twice, or not at all, when the process dies beside the commit point.
        """

    def published(self, query: str) -> PublishedBatch | None:
        """The last batch of a stopped query whose output is visible, where that may be one more than its marks tell of.

        None where output and marks are one transaction.
        """
        return None

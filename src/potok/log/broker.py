"""The interface of a log: topics, partitions, offsets, and the commit point of a query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from potok.log.consumer_groups import ConsumerGroups
from potok.log.maintenance import COMPACT, DAY_MS, DELETE, TopicMaintenance
from potok.metadata.metadata_store import MetadataStore
from potok.records.log_record import LogRecord
from potok.records.position import Position

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
"""Times are milliseconds since 1970. `headers` is null for a record without headers."""

READ_SCHEMA = LOG_SCHEMA.append(pa.field("offset", pa.int64()))

DEFAULT_SEGMENT_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The segment size and retention of a topic (None: forever). See `Broker.create_topic`."""

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
        """Whether old segments are deleted by age or size."""
        has_limit = self.retention_ms is not None or self.retention_bytes is not None
        return has_limit and DELETE in self.cleanup_policy


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """`bytes` and `segments` are -1 if unknown."""

    partition: int
    start_offset: int
    end_offset: int
    bytes: int
    segments: int
    removed: int = 0
    """How many offsets in the range have no record, because of compaction or transaction markers."""
    sealed_bytes: int = 0
    dirty_bytes: int = 0
    """Bytes of the sealed segments that were not compacted yet."""
    earliest_offset: int | None = None
    """The first offset of the archive; None without an archive."""
    exact: bool = True
    """Whether `records` is exact, not only an upper bound."""

    @property
    def records(self) -> int:
        return self.end_offset - self.start_offset - self.removed


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """`topic_id` is new each time a topic is created, so that a recreated topic is detected.

    `created_at_ms` is -1 if unknown.
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
        """The fraction of the sealed bytes that was not compacted yet."""
        sealed = sum(part.sealed_bytes for part in self.partitions)
        return sum(part.dirty_bytes for part in self.partitions) / sealed if sealed else 0.0


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The position of the records of one append: offsets `first_offset` to `first_offset + count`."""

    partition: int
    first_offset: int
    count: int


def position_of(topic: str, results: Sequence[AppendResult]) -> Position:
    """Return the position after the records of one append."""
    return Position.after((topic, result.partition, result.first_offset + result.count) for result in results)


@dataclass(frozen=True, slots=True)
class Staged:
    """Output of a task, encoded and durable but not visible until `Broker.publish`. Picklable."""

    topic: str
    partition: int
    count: int
    size: int
    by_task: bool = field(default=False, kw_only=True)
    """Whether a task may publish it, before the rest of the batch."""


class TaskOutput(Protocol):
    """Output that stays where the tasks of a batch produced it, until other tasks publish it."""

    @property
    def topics(self) -> Sequence[str]:
        """Return the topics that it has records for."""

    def publish(self, slots: Slots) -> Position:
        """Divide the output into slots, and publish each slot that has output in a task. Return the position after all
        output.
        """

    def release(self) -> None:
        """Release the memory of the output."""


class Slots(Protocol):
    """A division of output by topic and partition, and how a task publishes its share. Picklable."""

    @property
    def count(self) -> int:
        """Return the number of slots."""

    def slot_of(self, staged: Staged) -> int:
        """Return the slot of output, which depends on topic and partition alone."""

    def publish(self, slot: int, staged: Sequence[Staged]) -> Position:
        """Publish all output of a slot, unless an earlier attempt has; return the position after it."""


@dataclass(frozen=True, slots=True)
class PublishedBatch:
    """The batch of a query that `Broker.publish` makes visible, and the source offsets at its end."""

    query: str
    number: int
    offsets: Mapping[str, Mapping[int, int]]
    epoch: int = field(default=0, compare=False)
    """The epoch of the query; a process reads again what is published at the start of each."""


MetadataAfter = Callable[[Position], Mapping[str, bytes | None]]
"""Returns metadata keys that depend on the position after the published output."""


class Broker(MetadataStore, ConsumerGroups, TopicMaintenance, ABC):
    """A log. Every method may be called from any thread; a broker can be pickled and reopens itself."""

    url: str
    directory: Path
    """The directory for local files of queries."""
    max_record_bytes: int
    poll_interval_s: float
    """How long to sleep between two polls of the end offsets."""
    commits_together: bool = False
    """Whether one `publish` may contain the batches of several queries."""
    publishes_by_task: bool = False
    """Whether `publish` accepts output that tasks publish."""

    @property
    def home_url(self) -> str | None:
        """The server that stores the metadata; None if it is in `directory`."""
        return None

    def connector_options(self) -> dict[str, str]:
        """Options of Spark's own connector to this log; empty if there is none."""
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
            segment_bytes: A segment of this size is closed and a new one started.
            retention_ms: Delete segments whose last record was ingested longer ago.
            retention_bytes: Delete the oldest segments of a partition over this size.
            cleanup_policy: `delete` applies the two limits above; `compact` retains the last record of each key
                forever, and rejects records without a key; `compact,delete` does both.
            delete_retention_ms: How long compaction retains a tombstone (a null value) after it first saw it.
            min_compaction_lag_ms: The minimum age of records that are compacted.
            archive: A directory to which old segments are moved instead of being deleted.
            exist_ok: Leave an existing topic unchanged.
        """

    @abstractmethod
    def delete_topic(self, name: str) -> None: ...

    @abstractmethod
    def describe_topic(self, name: str) -> TopicDescription: ...

    def describe_topics(self, names: Sequence[str]) -> list[TopicDescription]:
        """Describe topics for display: if the log has only upper bounds of record counts, count if that is fast."""
        return [self.describe_topic(name) for name in names]

    @abstractmethod
    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """Return the `topic_id` of each topic; cheap enough for every batch."""

    @abstractmethod
    def partitions(self, topic: str) -> int: ...

    @abstractmethod
    def start_offsets(self, topic: str) -> dict[int, int]: ...

    def earliest_offsets(self, topic: str) -> dict[int, int]:
        """Return the first offsets that `read` can return: of the archive, or of the log without an archive."""
        return self.start_offsets(topic)

    @abstractmethod
    def end_offsets(self, topic: str) -> dict[int, int]: ...

    @abstractmethod
    def end_offsets_of(self, topics: Sequence[str]) -> dict[str, dict[int, int]]:
        """Return the end offsets of several topics at one instant; cheap enough to poll."""

    def version(self) -> int | None:
        """Return a number that differs whenever any topic has grown since an earlier call; None if the log has none.

        Much cheaper than the ends of many topics.
        """
        return None

    @abstractmethod
    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """Return the first offset whose timestamp is at or after `timestamp_ms`; the end offset if there is none.

        The archive is not searched.
        """

    def offsets_at(self, partitions: Sequence[tuple[str, int]], timestamp_ms: int) -> dict[tuple[str, int], int]:
        """Return `offset_at` for several (topic, partition) pairs."""
        return {(topic, part): self.offset_at(topic, part, timestamp_ms) for topic, part in partitions}

    @abstractmethod
    def append(
        self, topic: str, batch: pa.RecordBatch | Sequence[LogRecord], partition: int | None = None
    ) -> list[AppendResult]:
        """Append records; durable when it returns, and visible atomically.

        Without `partition`, a record goes to the partition of its key by Kafka's default partitioner, and records
        without a key are distributed. The log sets `ingested`; a timestamp that is null or -1 becomes the current
        time. Only the columns of LOG_SCHEMA are used, and only `value` is required.
        """

    @abstractmethod
    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Yield the records of offsets `start` to `end` (exclusive) as batches of READ_SCHEMA, in order.

        The range may start in the archive. Offsets whose records were removed by compaction are skipped, so there may
        be fewer records than offsets, or none.
        """

    @abstractmethod
    def stage(self, directory: Path | None, topic: str, partition: int, batch: pa.RecordBatch) -> Staged:
        """Encode output for `publish`, in any process.

        Large output is written to a file in `directory`, if given, which must be readable by the publishing process.
        """

    @abstractmethod
    def unfit(self, topic: str, batch: pa.RecordBatch) -> dict[int, str]:
        """Return the rows of a batch of LOG_SCHEMA that the topic would reject, each with the reason; cheap if there
        are none.

        `stage` accepts a whole batch or nothing, so callers that need the other rows call this first.
        """

    @abstractmethod
    def publish(
        self,
        staged: Sequence[Staged],
        metadata_keys: Mapping[str, bytes | None],
        expect: Mapping[str, bytes | None] = {},
        batch: PublishedBatch | None = None,
        metadata_after: MetadataAfter | None = None,
        output: TaskOutput | None = None,
    ) -> None:
        """The commit point: append all of `staged`, in order, and set `metadata_keys`, in one transaction.

        Args:
            metadata_keys: New values; None deletes a key.
            expect: The current values of these keys (None: absent); otherwise `MetadataConflict` is raised and nothing
                becomes visible.
            batch: What is published. A log that stores its metadata elsewhere needs it to detect, after a crash between
                the two, that this output is already visible.
            metadata_after: Returns further metadata keys, which depend on the position after the output.
            output: Output that tasks publish before, each its share in one transaction; only if the log
                `publishes_by_task`.
        """

    @abstractmethod
    def append_staged(self, staged: Sequence[Staged]) -> Position:
        """Append staged output, in order, without metadata; durable when it returns. Return the position after it.

        For output that may be duplicated or lost when the process dies around the commit point.
        """

    def published(self, query: str) -> PublishedBatch | None:
        """Return the last batch of a stopped query whose output is visible, which may be one after that of its
        metadata. Raise if only a part of its output is visible.

        None if output and metadata are one transaction.
        """
        return None

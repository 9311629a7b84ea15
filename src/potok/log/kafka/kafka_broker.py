"""Kafka as a log. Topics and records are in Kafka; metadata, which Kafka cannot store, is in a metadata store."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import pyarrow as pa

from potok.clock import now_ms
from potok.log.broker import (
    DEFAULT_SEGMENT_BYTES,
    AppendResult,
    Broker,
    MetadataAfter,
    PartitionDescription,
    PublishedBatch,
    Staged,
    TaskOutput,
    TopicConfig,
    TopicDescription,
)
from potok.log.consumer_groups import (
    DEFAULT_LEASE_MS,
    DEFAULT_MAX_PAUSE_MS,
    GroupDescription,
    Membership,
    PartitionListener,
)
from potok.log.embedded.segments.encode import columns_of, normalised
from potok.log.errors import BrokerClosed, MetadataConflict, OffsetOutOfRange
from potok.log.failpoint import failpoint
from potok.log.kafka.admin.count import count_records
from potok.log.kafka.admin.topics import beginning, delete_before
from potok.log.kafka.clients import TIMEOUT_S
from potok.log.kafka.connections import Connections
from potok.log.kafka.errors import OptionError
from potok.log.kafka.group_membership import KafkaMembership, describe_group, list_groups
from potok.log.kafka.java_options import connector_options
from potok.log.kafka.metadata_location import has_metadata, metadata_store, protected, set_protected
from potok.log.kafka.options import KafkaOptions
from potok.log.kafka.producer_records import check
from potok.log.kafka.slots import KafkaSlots
from potok.log.kafka.staged_rows import StagedRows, stage_rows
from potok.log.maintenance import DAY_MS, DELETE
from potok.log.partitioner import split
from potok.log.ranges import within
from potok.metadata.metadata_store import MetadataStore
from potok.records.log_record import LogRecord
from potok.records.position import Position
from potok.settings import Settings

DEFAULT_MAX_RECORD_BYTES = 1_000_000
"""The default limit of Kafka's client and server."""

_UNKNOWN = -1

_logger = logging.getLogger(__name__)

_shared: dict[tuple[KafkaOptions, Path], KafkaBroker] = {}


class KafkaBroker(Broker):
    """A cluster, and the location of its metadata: the embedded log in `directory`, or a server.

    Appends are idempotent and acknowledged by all in-sync replicas; they become visible record by record. `publish`
    uses one transaction, and readers never see open or aborted ones.
    """

    poll_interval_s = 0.02
    publishes_by_task = True

    def __init__(self, options: KafkaOptions, directory: Path) -> None:
        self.options = options
        self.url = options.url
        self.directory = directory.resolve()
        self.max_record_bytes = int(options.values.get("message.max.bytes", DEFAULT_MAX_RECORD_BYTES))
        self.closed = False
        self._by_process: dict[int, Connections] = {}

    @classmethod
    def at(cls, url: str, settings: Settings | None = None, *, shared: bool = True) -> KafkaBroker:
        """Open the broker of a URL; options that the URL does not set are taken from the settings."""
        settings = settings or Settings.load()
        options = KafkaOptions.of_url(url, settings.kafka, settings.state)
        options = replace(options, first_timeout_s=settings.connect_timeout_ms / 1000)
        return cls.shared(options, options.home_path) if shared else cls(options, options.home_path)

    @classmethod
    def shared(cls, options: KafkaOptions, directory: Path) -> KafkaBroker:
        """Return the broker of the whole process; a new one after it was closed."""
        key = (options, directory.resolve())
        found = _shared.get(key)
        if found is None or found.closed:
            found = _shared[key] = cls(options, directory)
        return found

    def __reduce__(self) -> tuple[object, ...]:
        return _opened_again, (self.options, self.directory)

    def __repr__(self) -> str:
        return f"KafkaBroker({self.url!r})"

    @property
    def _kafka(self) -> Connections:
        """The connections of this process: threads and sockets do not survive a fork, so a child has its own."""
        if self.closed:
            raise BrokerClosed(self.url)
        process = os.getpid()
        found = self._by_process.get(process)
        return found or self._by_process.setdefault(process, Connections(self.options))

    @property
    def home(self) -> MetadataStore:
        """The metadata store. Created by the first write: reading leaves no files behind."""
        return metadata_store(self.home_url, self.directory)

    @property
    def home_url(self) -> str | None:
        """The server that stores the metadata, and by default the state of queries."""
        return self.options.home_url

    @property
    def _has_home(self) -> bool:
        return has_metadata(self.home_url, self.directory)

    def connector_options(self) -> dict[str, str]:
        """Return the options of Spark's connector for the same cluster, including secrets. Empty if Java does not
        support them."""
        try:
            return connector_options(self.options)
        except OptionError as error:
            _logger.warning("Spark's connector is not used: %s", error.message)
            return {}

    def topics(self) -> list[str]:
        return self._kafka.topics.names()

    def has_topic(self, name: str) -> bool:
        return self._kafka.topics.exists(name)

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
        limits = (segment_bytes, retention_ms, retention_bytes)
        compaction = (cleanup_policy, delete_retention_ms, min_compaction_lag_ms)
        config = TopicConfig(*limits, *compaction, None if archive is None else str(archive))
        self._kafka.topics.create(name, partitions, config, exist_ok=exist_ok)

    def delete_topic(self, name: str) -> None:
        self._kafka.topics.delete(name)

    def describe_topic(self, name: str) -> TopicDescription:
        """Kafka does not report the size of a topic, the number of its records, nor its creation time."""
        topic = self._kafka.topics.look(name)
        starts, ends = self.start_offsets(name), self.end_offsets(name)
        parts = tuple(
            PartitionDescription(part, starts[part], ends[part], _UNKNOWN, _UNKNOWN, exact=starts[part] == ends[part])
            for part in starts
        )
        return TopicDescription(name, topic.id, parts, self._kafka.topics.config(name), _UNKNOWN)

    def describe_topics(self, names: Sequence[str]) -> list[TopicDescription]:
        return count_records(self._kafka.clients, super().describe_topics(names))

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        return {name: topic.id for name, topic in self._kafka.topics.look_all(topics).items()}

    def partitions(self, topic: str) -> int:
        return self._kafka.topics.look(topic).partitions

    def start_offsets(self, topic: str) -> dict[int, int]:
        return self._kafka.positions.starts(topic)

    def end_offsets(self, topic: str) -> dict[int, int]:
        return self.end_offsets_of([topic])[topic]

    def end_offsets_of(self, topics: Sequence[str]) -> dict[str, dict[int, int]]:
        return self._kafka.positions.ends(topics)

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        return self.offsets_at([(topic, partition)], timestamp_ms)[topic, partition]

    def offsets_at(self, partitions: Sequence[tuple[str, int]], timestamp_ms: int) -> dict[tuple[str, int], int]:
        return self._kafka.positions.at(partitions, timestamp_ms)

    def append(
        self, topic: str, batch: pa.RecordBatch | Sequence[LogRecord], partition: int | None = None
    ) -> list[AppendResult]:
        rows = normalised(batch if isinstance(batch, pa.RecordBatch) else columns_of(batch))
        known = self._kafka.topics.recall(topic, partition)
        check(topic, rows, self.max_record_bytes)
        parts = [(partition, rows)] if partition is not None else split(rows, known.partitions)
        return self._kafka.appender.append([(topic, number, part) for number, part in parts])

    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        known = self._kafka.topics.recall(topic, partition)
        if not 0 <= start <= end:
            held = (self.start_offsets(topic)[partition], self.end_offsets(topic)[partition])
            raise OffsetOutOfRange(topic, partition, (start, end), held)
        return self._kafka.readers.read(known, partition, start, end)

    def stage(self, directory: Path | None, topic: str, partition: int, batch: pa.RecordBatch) -> StagedRows:
        rows = normalised(batch)
        check(topic, rows, self.max_record_bytes)
        return stage_rows(directory, topic, partition, rows)

    def unfit(self, topic: str, batch: pa.RecordBatch) -> dict[int, str]:
        return self._kafka.limits.of(topic).unfit(topic, batch, self.max_record_bytes, now_ms())

    def append_staged(self, staged: Sequence[Staged]) -> Position:
        outputs = cast("Sequence[StagedRows]", staged)
        self._check_partitions(outputs)
        position = self._kafka.appender.append_parts(
            [(output.topic, output.partition, output.rows()) for output in outputs]
        )
        for output in outputs:
            output.remove()
        return position

    def publish(
        self,
        staged: Sequence[Staged],
        metadata_keys: Mapping[str, bytes | None],
        expect: Mapping[str, bytes | None] = {},
        batch: PublishedBatch | None = None,
        metadata_after: MetadataAfter | None = None,
        output: TaskOutput | None = None,
    ) -> None:
        """Commit Kafka's transactions first, those of tasks before that of this process, then the metadata.

        If a process dies between them, the batch is run again; the fences, written in each transaction, say which
        output is visible, and only the rest is published. Without `batch` there is no fence, and the output is
        duplicated.
        """
        outputs = [output for output in cast("Sequence[StagedRows]", staged) if output.count]
        failpoint("log.publish.before")

        owned = partial(self._check_owner, expect)
        owned()
        self._check_partitions(outputs)
        position = Position()
        if outputs or batch is not None:
            query = "" if batch is None else batch.query
            life = self._life(query) if query else ""
            transactor = self._kafka.transactor(query, life)
            if output is not None and batch is not None:
                if transactor.has_published(batch, owned):
                    ends = self.end_offsets_of(output.topics)
                    position = Position.after((name, part, end) for name in ends for part, end in ends[name].items())
                else:
                    if not self._uses_slots(query):
                        self.home.set_metadata({_slots_key(query): b""}, expect)
                    position = output.publish(KafkaSlots(self, batch, life, expect))
                    failpoint("log.publish.slots")
            position |= transactor.publish(outputs, batch, owned if expect else None, partial(self._uses_slots, query))
        failpoint("log.publish.sent")
        if metadata_after is not None:
            metadata_keys = {**metadata_keys, **metadata_after(position)}
        self.home.set_metadata(metadata_keys, expect)
        failpoint("log.publish.committed")
        if batch is not None:
            self._kafka.progress.report(batch)
        for rows in outputs:
            rows.remove()

    def _uses_slots(self, query: str) -> bool:
        return self.get_metadata(_slots_key(query)) is not None

    def publish_slot(self, slots: KafkaSlots, slot: int, staged: Sequence[Staged]) -> Position:
        """Publish the output of one slot, in a task."""
        transactor = self._kafka.transactor(slots.batch.query, slots.life, slot)
        outputs = cast("Sequence[StagedRows]", staged)
        return transactor.publish(outputs, slots.batch, partial(self._check_owner, slots.expect))

    def _check_owner(self, expect: Mapping[str, bytes | None]) -> None:
        for name, value in expect.items():
            if self.get_metadata(name) != value:
                raise MetadataConflict(name)

    def published(self, query: str) -> PublishedBatch | None:
        """Return the last published batch, ending open transactions; only for the process that holds the query."""
        life = self.get_metadata(_ledger_id_key(query))
        fence = None if life is None else self._kafka.transactor(query, life.decode()).last_fence()
        if life is None or fence is None or fence.life != life.decode():
            return None
        return PublishedBatch(query, fence.number, fence.offsets)

    def _check_partitions(self, outputs: Sequence[StagedRows]) -> None:
        for topic, partition in {(output.topic, output.partition) for output in outputs}:
            self._kafka.topics.recall(topic, partition)

    def _life(self, query: str) -> str:
        """Return an id that is new with each ledger of a query; deleted with its other metadata."""
        metadata_key = _ledger_id_key(query)
        known = self.home.get_metadata(metadata_key)
        if known is not None:
            return known.decode()
        try:
            self.home.set_metadata({metadata_key: uuid.uuid4().hex.encode()}, {metadata_key: None})
        except MetadataConflict:
            pass  # another process was faster
        return (self.home.get_metadata(metadata_key) or b"").decode()

    def get_metadata(self, name: str) -> bytes | None:
        return self.home.get_metadata(name) if self._has_home else None

    def get_metadata_of(self, names: Sequence[str]) -> tuple[bytes | None, ...]:
        return self.home.get_metadata_of(names) if self._has_home else (None,) * len(names)

    def list_metadata(self, prefix: str) -> dict[str, bytes]:
        return self.home.list_metadata(prefix) if self._has_home else {}

    def set_metadata(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None:
        self.home.set_metadata(updates, expect)

    def committed(self, group: str, topic: str) -> dict[int, int]:
        return self._kafka.groups.committed(group, topic)

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        self._kafka.groups.commit(group, topic, offsets)

    def join_group(
        self,
        group: str,
        topics: Sequence[str],
        listener: PartitionListener,
        *,
        lease_ms: int = DEFAULT_LEASE_MS,
        max_pause_ms: int = DEFAULT_MAX_PAUSE_MS,
    ) -> Membership:
        return KafkaMembership(self._kafka.clients, group, topics, listener, lease_ms, max_pause_ms)

    def groups(self) -> list[str]:
        return list_groups(self._kafka.clients)

    def describe_group(self, group: str) -> GroupDescription:
        return describe_group(self._kafka.clients, group)

    def set_protected(self, owner: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Store protected offsets. Kafka's own retention ignores them."""
        set_protected(self.home, owner, offsets)

    def enforce_retention(
        self, topic: str | None = None, protect: Mapping[tuple[str, int], int] = {}
    ) -> dict[tuple[str, int], int]:
        """Do nothing: Kafka deletes old records itself."""
        return {}

    def remove_records(self, topic: str, partition: int, ranges: Sequence[tuple[int, int]]) -> int:
        """Remove records at the start of a partition: Kafka cannot remove records after one that stays."""
        start = self.start_offsets(topic)[partition]
        left = within(ranges, start, protected(self.home).get((topic, partition), ranges[-1][1])) if ranges else []
        if not left:
            return 0
        until, count = beginning(self.read(topic, partition, start, left[-1][1]), left)
        if count:
            delete_before(self._kafka.clients, topic, partition, until)
        return count

    def close(self) -> None:
        """Close the connections. The metadata store stays open, because the process may share it."""
        if not self.closed:
            self.closed = True
            mine = self._by_process.pop(os.getpid(), None)
            if mine is not None:
                mine.close()


def _ledger_id_key(query: str) -> str:
    return f"query/{query}/life"


def _slots_key(query: str) -> str:
    return f"query/{query}/slots"


def _opened_again(options: KafkaOptions, directory: Path) -> KafkaBroker:
    """Reopen a pickled broker; a module-level function, since a class method would be pickled by value.

    The sender was connected: if there is no response here, the cluster is temporarily unavailable.
    """
    return KafkaBroker.shared(replace(options, first_timeout_s=TIMEOUT_S), directory)

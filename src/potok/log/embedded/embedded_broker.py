"""The embedded log in a directory: a library, not a server; several processes may use one directory."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import pyarrow as pa

from potok.clock import now_ms
from potok.errors import LogError
from potok.log.broker import (
    DEFAULT_SEGMENT_BYTES,
    AppendResult,
    Broker,
    MetadataAfter,
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
from potok.log.embedded import catalog, describe, group_metadata, groups
from potok.log.embedded import metadata_keys as metadata_keys
from potok.log.embedded.commit import Committer, position_after
from potok.log.embedded.group_commit import GroupCommit
from potok.log.embedded.group_membership import EmbeddedMembership
from potok.log.embedded.maintenance import archived, retention
from potok.log.embedded.maintenance.maintenance import Upkeep
from potok.log.embedded.maintenance.verify import CheckedPart, verify_topic
from potok.log.embedded.metadata import DEFAULT_MAP_BYTES, Metadata, Transaction
from potok.log.embedded.segments.encode import columns_of, encode, encode_record, normalised
from potok.log.embedded.segments.read import offset_at, read_range
from potok.log.embedded.segments.segment import partition_directory, sync_directory
from potok.log.embedded.segments.staged import StagedFrames, in_memory, stage_frames
from potok.log.errors import KeylessRecord, TopicExists, TopicNotFound
from potok.log.maintenance import DAY_MS, DELETE, ArchivedFile, Compaction, InvalidTopicConfig, policy_of
from potok.log.partitioner import partition_of, split
from potok.log.record_limits import keyless, oversized
from potok.permissions import private_directory
from potok.records.log_record import LogRecord
from potok.records.position import Position

DEFAULT_MAX_RECORD_BYTES = 64 << 20

_shared: dict[Path, EmbeddedBroker] = {}


class EmbeddedBroker(Broker):
    """Topics under `<directory>/log`: segments of frames, and the metadata in LMDB."""

    poll_interval_s = 0.002
    commits_together = True

    def __init__(
        self,
        directory: str | Path,
        *,
        max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES,
        map_bytes: int = DEFAULT_MAP_BYTES,
    ) -> None:
        self.directory = Path(directory).resolve()
        self.url = f"file:{self.directory}"
        self.max_record_bytes = max_record_bytes
        self._topics = self.directory / "log" / "topics"
        private_directory(self._topics)
        self._metadata = Metadata.open(self.directory / "log" / "meta", map_bytes)
        self._check_format()
        self._committer = Committer(self._metadata, self._topics)
        self._upkeep = Upkeep(self._metadata, self._topics, lambda: now_ms())
        self._appends = GroupCommit(lambda outputs: self._committer.commit(outputs, {}, {}, "append"))
        self.closed = False

    def _check_format(self) -> None:
        try:
            if not self._metadata.read(catalog.check_format):
                self._metadata.write(lambda txn: txn.put(b"v", catalog.FORMAT, overwrite=False))
        except LogError:
            self._metadata.close()
            raise

    @classmethod
    def shared(cls, directory: Path) -> EmbeddedBroker:
        """Return the broker of a directory for the whole process; a new one after it was closed."""
        directory = directory.resolve()
        found = _shared.get(directory)
        if found is None or found.closed:
            _shared.pop(directory, None)
            opened = cls(directory)
            found = _shared.setdefault(directory, opened)
            if found is not opened:
                opened.close()
        return found

    def __reduce__(self) -> tuple[object, ...]:
        return _open_shared, (self.directory,)

    def topics(self) -> list[str]:
        return self._metadata.read(lambda txn: [topic.name for topic in catalog.all_topics(txn)])

    def has_topic(self, name: str) -> bool:
        return self._metadata.read(lambda txn: catalog.find_topic(txn, name)) is not None

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
        catalog.check_topic_name(name)
        if partitions < 1:
            raise LogError(f'topic "{name}" cannot have {partitions} partitions', hint="use 1 or more")
        if delete_retention_ms < 0 or min_compaction_lag_ms < 0:
            raise InvalidTopicConfig(name, "a time is negative", "give the times of compaction as 0 or more")
        config = TopicConfig(
            segment_bytes,
            retention_ms,
            retention_bytes,
            policy_of(name, cleanup_policy),
            delete_retention_ms,
            min_compaction_lag_ms,
            None if archive is None else archived.portable(self._topics, archived.root_of(name, archive)),
        )
        topic = catalog.new_topic(name, partitions, config, now_ms())
        if self.has_topic(name):
            if exist_ok:
                return
            raise TopicExists(name)
        for partition in range(partitions):
            private_directory(partition_directory(self._topics, topic.directory, partition))
        sync_directory(self._topics / topic.directory)
        sync_directory(self._topics)

        def create(txn: Transaction) -> bool:
            if catalog.find_topic(txn, name) is None:
                catalog.put_topic(txn, topic)
                return True
            return False

        if not self._metadata.write(create):
            shutil.rmtree(self._topics / topic.directory, ignore_errors=True)
            if not exist_ok:
                raise TopicExists(name)

    def delete_topic(self, name: str) -> None:
        def delete(txn: Transaction) -> catalog.Topic:
            topic = catalog.get_topic(txn, name)
            txn.delete(catalog.topic_key(name))
            for kind in catalog.PER_TOPIC:
                catalog.delete_prefix(txn, kind + topic.id)
            return topic

        topic = self._metadata.write(delete)
        shutil.rmtree(self._topics / topic.directory, ignore_errors=True)

    def describe_topic(self, name: str) -> TopicDescription:
        return self._metadata.read(lambda txn: describe.describe_topic(txn, name))

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        return self._metadata.read(lambda txn: {topic: catalog.get_topic(txn, topic).id.hex() for topic in topics})

    def partitions(self, topic: str) -> int:
        return self._topic(topic).partitions

    def _topic(self, name: str) -> catalog.Topic:
        return self._metadata.read(lambda txn: catalog.get_topic(txn, name))

    def start_offsets(self, topic: str) -> dict[int, int]:
        return self._metadata.read(
            lambda txn: {part: state.start_offset for part, state in _states(txn, topic).items()}
        )

    def earliest_offsets(self, topic: str) -> dict[int, int]:
        return self._metadata.read(lambda txn: describe.earliest_offsets(txn, topic))

    def end_offsets(self, topic: str) -> dict[int, int]:
        return self.end_offsets_of([topic])[topic]

    def end_offsets_of(self, topics: Sequence[str]) -> dict[str, dict[int, int]]:
        return self._metadata.read(
            lambda txn: {
                topic: {part: state.end_offset for part, state in _states(txn, topic).items()} for topic in topics
            }
        )

    def version(self) -> int:
        return self._metadata.read(lambda txn: txn.id())

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        return offset_at(self._metadata, self._topics, topic, partition, timestamp_ms)

    def append(
        self, topic: str, batch: pa.RecordBatch | Sequence[LogRecord], partition: int | None = None
    ) -> list[AppendResult]:
        found = self._topic(topic)
        partitions = found.partitions
        if partition is not None and not 0 <= partition < partitions:
            raise TopicNotFound(topic, partition, partitions)
        if not isinstance(batch, pa.RecordBatch):
            if len(batch) == 1 and (partition is not None or partitions == 1 or batch[0].key is not None):
                if batch[0].key is None and found.config.compacted:
                    raise KeylessRecord(topic)
                return self._append_one(topic, batch[0], partition, partitions)
            batch = columns_of(batch)
        batch = normalised(batch)
        self._check_keys(found, batch)
        if len(batch) == 0:
            return []
        parts = [(partition, batch)] if partition is not None else split(batch, partitions)
        return self._appends.append(
            [in_memory(topic, number, encode(part, self.max_record_bytes)) for number, part in parts]
        )

    def _append_one(self, topic: str, record: LogRecord, partition: int | None, partitions: int) -> list[AppendResult]:
        if partition is None:
            partition = 0 if record.key is None else partition_of(record.key, partitions)
        return self._appends.append([in_memory(topic, partition, [encode_record(record, self.max_record_bytes)])])

    def _check_keys(self, topic: catalog.Topic, batch: pa.RecordBatch) -> None:
        if topic.config.compacted and batch.column("key").null_count:
            raise KeylessRecord(topic.name)

    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        return read_range(self._metadata, self._topics, topic, partition, start, end)

    def stage(self, directory: Path | None, topic: str, partition: int, batch: pa.RecordBatch) -> StagedFrames:
        found = self._metadata.read(lambda txn: catalog.find_topic(txn, topic))
        batch = normalised(batch)
        if found is not None:
            self._check_keys(found, batch)
        return stage_frames(directory, topic, partition, encode(batch, self.max_record_bytes))

    def unfit(self, topic: str, batch: pa.RecordBatch) -> dict[int, str]:
        found = self._metadata.read(lambda txn: catalog.find_topic(txn, topic))
        keyed = found is not None and found.config.compacted
        return oversized(batch, self.max_record_bytes) | (keyless(topic, batch.column("key")) if keyed else {})

    def publish(
        self,
        staged: Sequence[Staged],
        metadata_keys: Mapping[str, bytes | None],
        expect: Mapping[str, bytes | None] = {},
        batch: PublishedBatch | None = None,
        metadata_after: MetadataAfter | None = None,
        output: TaskOutput | None = None,
    ) -> None:
        assert output is None, "all output is in the transaction"
        frames = cast("Sequence[StagedFrames]", staged)
        self._committer.commit(frames, metadata_keys, expect, "publish", metadata_after)

    def append_staged(self, staged: Sequence[Staged]) -> Position:
        frames = cast("Sequence[StagedFrames]", staged)
        return position_after(frames, self._committer.commit(frames, {}, {}, "append"))

    def get_metadata(self, name: str) -> bytes | None:
        return self._metadata.read(lambda txn: txn.get(metadata_keys.key(name)))

    def get_metadata_of(self, names: Sequence[str]) -> tuple[bytes | None, ...]:
        keys = [metadata_keys.key(name) for name in names]
        return self._metadata.read(lambda txn: tuple([txn.get(key) for key in keys]))

    def list_metadata(self, prefix: str) -> dict[str, bytes]:
        return self._metadata.read(lambda txn: metadata_keys.with_prefix(txn, prefix))

    def set_metadata(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None:
        def update(txn: Transaction) -> None:
            metadata_keys.check(txn, expect)
            metadata_keys.put(txn, updates)

        self._metadata.write(update)

    def committed(self, group: str, topic: str) -> dict[int, int]:
        return self._metadata.read(lambda txn: groups.committed(txn, group, topic))

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        def update(txn: Transaction) -> None:
            group_metadata.check_nobody(txn, group, now_ms())
            groups.commit(txn, group, topic, offsets)

        self._metadata.write(update)

    def join_group(
        self,
        group: str,
        topics: Sequence[str],
        listener: PartitionListener,
        *,
        lease_ms: int = DEFAULT_LEASE_MS,
        max_pause_ms: int = DEFAULT_MAX_PAUSE_MS,
    ) -> Membership:
        return EmbeddedMembership(self._metadata, group, topics, listener, lease_ms, max_pause_ms)

    def groups(self) -> list[str]:
        return self._metadata.read(lambda txn: group_metadata.names(txn, now_ms()))

    def describe_group(self, group: str) -> GroupDescription:
        return self._metadata.read(lambda txn: group_metadata.describe(txn, group, now_ms()))

    def set_protected(self, owner: str, offsets: Mapping[tuple[str, int], int]) -> None:
        self._metadata.write(lambda txn: retention.set_protected(txn, owner, offsets))

    def protected(self) -> dict[tuple[str, int], int]:
        """The first protected offset of each partition."""
        return self._metadata.read(retention.protected)

    def enforce_retention(
        self, topic: str | None = None, protect: Mapping[tuple[str, int], int] = {}
    ) -> dict[tuple[str, int], int]:
        return self._upkeep.enforce_retention(topic, protect)

    def compact_topic(self, topic: str, *, seal: bool = False) -> list[Compaction]:
        return self._upkeep.compact(topic, seal=seal)

    def archive_topic(
        self, topic: str, directory: str | Path | None = None, older_than_ms: int = 0, *, seal: bool = False
    ) -> list[ArchivedFile]:
        root = None if directory is None else archived.root_of(topic, directory)
        return self._upkeep.archive(topic, root, older_than_ms, seal=seal)

    def remove_records(self, topic: str, partition: int, ranges: Sequence[tuple[int, int]]) -> int:
        return self._upkeep.remove(topic, partition, ranges) if ranges else 0

    def maintain(self) -> None:
        self._upkeep.maintain()

    def verify(self) -> None:
        """Verify the checksum of every metadata page."""
        self._metadata.verify()

    def verify_topic(self, topic: str) -> Iterator[CheckedPart]:
        """Verify all records and the whole index of a topic, file by file."""
        return verify_topic(self._metadata, self._topics, topic)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._metadata.close()


def _open_shared(directory: Path) -> EmbeddedBroker:
    """A module-level function: cloudpickle would send a class method by value, without its references."""
    return EmbeddedBroker.shared(directory)


def _states(txn: Transaction, name: str) -> dict[int, catalog.PartitionState]:
    topic = catalog.get_topic(txn, name)
    return {partition: catalog.get_state(txn, topic, partition) for partition in range(topic.partitions)}

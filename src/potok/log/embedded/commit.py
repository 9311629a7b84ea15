"""The commit point: frames are written and synced, then one metadata transaction makes all of them visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from potok.clock import now_ms
from potok.errors import LogError
from potok.log.broker import AppendResult, MetadataAfter
from potok.log.embedded import catalog, metadata_keys
from potok.log.embedded.catalog import PartitionState, Topic
from potok.log.embedded.locks import partition_locks
from potok.log.embedded.maintenance import retention
from potok.log.embedded.metadata import Metadata, Transaction
from potok.log.embedded.segments import sealed
from potok.log.embedded.segments.partition_writer import PartitionWriter, sync_all
from potok.log.embedded.segments.segment import partition_directory, sweep
from potok.log.embedded.segments.staged import StagedFrames, Unstaged
from potok.log.errors import TopicNotFound
from potok.log.failpoint import failpoint
from potok.records.position import Position

Output = StagedFrames | Unstaged
PartitionId = tuple[str, int]


class Committer:
    def __init__(self, metadata: Metadata, topics: Path) -> None:
        self._metadata = metadata
        self._topics = topics

    def commit(
        self,
        outputs: Sequence[Output],
        updates: Mapping[str, bytes | None],
        expect: Mapping[str, bytes | None],
        operation: str,
        metadata_after: MetadataAfter | None = None,
    ) -> list[AppendResult]:
        """Append `outputs` and set metadata keys, both or neither. `operation` names the failpoints."""
        failpoint(f"log.{operation}.before")
        topic_partitions = sorted({(output.topic, output.partition) for output in outputs})
        topics = self._metadata.read(
            lambda txn: {
                topic_partition: catalog.get_topic(txn, *topic_partition) for topic_partition in topic_partitions
            }
        )
        try:
            results = self._locked_commit(outputs, topics, updates, expect, operation, metadata_after)
        except FileNotFoundError as error:
            self._metadata.read(lambda txn: _states(txn, topics, {}))
            raise LogError(
                f"a part of the log is missing: {error.filename}", hint="restore it from a backup; nothing was appended"
            ) from error
        for output in outputs:
            if isinstance(output, StagedFrames):
                output.remove()
        return results

    def _locked_commit(
        self,
        outputs: Sequence[Output],
        topics: Mapping[PartitionId, Topic],
        updates: Mapping[str, bytes | None],
        expect: Mapping[str, bytes | None],
        operation: str,
        metadata_after: MetadataAfter | None,
    ) -> list[AppendResult]:
        directories = [self._directory(topic, partition) for (_, partition), topic in topics.items()]
        writers: dict[PartitionId, PartitionWriter] = {}
        with ExitStack() as held:
            held.enter_context(partition_locks(directories))
            states = self._metadata.read(lambda txn: _states(txn, topics, expect))
            results = self._write(outputs, topics, states, writers, held)
            failpoint(f"log.{operation}.written")
            sync_all([writer.sync for writer in writers.values()])
            failpoint(f"log.{operation}.synced")
            if metadata_after is not None:
                updates = {**updates, **metadata_after(position_after(outputs, results))}
            rolled = self._metadata.write(lambda txn: _record(txn, writers, updates, expect))
            failpoint(f"log.{operation}.committed")
            for directory, known in rolled.items():
                sweep(directory, known)
        return results

    def _write(
        self,
        outputs: Sequence[Output],
        topics: Mapping[PartitionId, Topic],
        states: Mapping[PartitionId, PartitionState],
        writers: dict[PartitionId, PartitionWriter],
        held: ExitStack,
    ) -> list[AppendResult]:
        ingested = now_ms()
        try:
            for topic_partition, topic in topics.items():
                directory = self._directory(topic, topic_partition[1])
                writer = writers[topic_partition] = PartitionWriter(
                    topic, topic_partition[1], states[topic_partition], directory, ingested
                )
                held.callback(writer.close)
            results = []
            for output in outputs:
                writer = writers[output.topic, output.partition]
                results.append(AppendResult(output.partition, writer.end_offset, output.count))
                writer.extend(output)
        except LogError:
            for writer in writers.values():
                writer.discard()
            raise
        return results

    def _directory(self, topic: Topic, partition: int) -> Path:
        return partition_directory(self._topics, topic.directory, partition)


def position_after(outputs: Sequence[Output], results: Sequence[AppendResult]) -> Position:
    return Position.after(
        (output.topic, result.partition, result.first_offset + result.count)
        for output, result in zip(outputs, results, strict=True)
    )


def _states(
    txn: Transaction, topics: Mapping[PartitionId, Topic], expect: Mapping[str, bytes | None]
) -> dict[PartitionId, PartitionState]:
    """Return the states; raise if a topic was deleted or recreated meanwhile."""
    metadata_keys.check(txn, expect)
    found = {}
    for topic_partition, topic in topics.items():
        if catalog.get_topic(txn, *topic_partition).id != topic.id:
            raise TopicNotFound(topic_partition[0])
        found[topic_partition] = catalog.get_state(txn, topic, topic_partition[1])
    return found


def _record(
    txn: Transaction,
    writers: Mapping[PartitionId, PartitionWriter],
    updates: Mapping[str, bytes | None],
    expect: Mapping[str, bytes | None],
) -> dict[Path, set[Path]]:
    """Return the current segments of the partitions in which a segment was sealed."""
    metadata_keys.check(txn, expect)
    rolled: dict[Path, set[Path]] = {}
    for topic_partition, writer in writers.items():
        writer.record(txn)
        if writer.sealed:
            if writer.topic.config.archive is None:
                retention.expire(
                    txn, writer.topic, writer.partition, retention.protected(txn).get(topic_partition), now_ms()
                )
            rolled[writer.directory] = sealed.known_paths(txn, writer.topic, writer.partition, writer.directory)
    metadata_keys.put(txn, updates)
    return rolled

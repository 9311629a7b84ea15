"""Retention, archiving and compaction of the topics of a log, partition by partition."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from potok.errors import LogError
from potok.log.embedded import catalog
from potok.log.embedded.catalog import Segment, Topic
from potok.log.embedded.locks import upkeep_lock
from potok.log.embedded.maintenance import archived, retention
from potok.log.embedded.maintenance.archive import Archiver
from potok.log.embedded.maintenance.compact import Compactor, work_of
from potok.log.embedded.maintenance.remove import Remover
from potok.log.embedded.metadata import Metadata, Transaction
from potok.log.embedded.segments import sealed
from potok.log.embedded.segments.segment import delete_files, partition_directory, segment_path
from potok.log.errors import BrokerClosed, NoArchive, NotCompacted, TopicNotFound
from potok.log.maintenance import ArchivedFile, Compaction
from potok.log.ranges import Ranges

PartitionId = tuple[str, int]

_logger = logging.getLogger("potok.log")


class Upkeep:
    """Maintains old records. `clock` returns the time in milliseconds."""

    def __init__(self, metadata: Metadata, topics: Path, clock: Callable[[], int]) -> None:
        self._metadata, self._topics, self._clock = metadata, topics, clock

    def enforce_retention(self, topic: str | None, protect: Mapping[PartitionId, int]) -> dict[PartitionId, int]:
        starts: dict[PartitionId, int] = {}
        for found in self._wanted(topic):
            if not found.config.expires:
                continue
            for partition in range(found.partitions):
                start = self._expire(found, partition, protect.get((found.name, partition)), wait=True)
                if start is not None:
                    starts[found.name, partition] = start
        return starts

    def compact(self, name: str, *, seal: bool) -> list[Compaction]:
        topic = self._topic(name)
        if not topic.config.compacted:
            raise NotCompacted(name)
        done = []
        for partition in range(topic.partitions):
            with self._partition(topic, partition, wait=True) as directory:
                assert directory is not None
                if seal:
                    sealed.seal(self._metadata, directory, topic, partition)
                done.append(Compactor(self._metadata, topic, partition, directory, self._clock()).run())
        return done

    def remove(self, name: str, partition: int, ranges: Ranges) -> int:
        topic = self._metadata.read(lambda txn: catalog.get_topic(txn, name, partition))
        with self._partition(topic, partition, wait=True) as directory:
            assert directory is not None
            return Remover(self._metadata, topic, partition, directory).run(ranges)

    def archive(self, name: str, root: Path | None, older_than_ms: int, *, seal: bool) -> list[ArchivedFile]:
        topic = self._topic(name)
        root = root or self._root(topic)
        if root is None:
            raise NoArchive(name)
        done: list[ArchivedFile] = []
        for partition in range(topic.partitions):
            with self._partition(topic, partition, wait=True) as directory:
                assert directory is not None
                if seal:
                    sealed.seal(self._metadata, directory, topic, partition)
                segments = self._settled(topic, partition, self._clock() - older_than_ms)
                done += self._archiver(topic, partition, directory, root).move(segments)
        return done

    def maintain(self) -> None:
        """Do everything that is due, except where another process does.

        A failure in one partition, such as an unwritable archive or a damaged segment, does not affect the others; it
        is raised at the end.
        """
        failed: list[LogError | OSError] = []
        for work in (self._expire_if_due, self._compact_if_due):
            for topic in self._wanted(None):
                for partition in range(topic.partitions):
                    try:
                        work(topic, partition)
                    except BrokerClosed:
                        raise
                    except TopicNotFound:
                        break  # deleted meanwhile
                    except (LogError, OSError) as error:
                        failed.append(error)
        for other in failed[1:]:
            _logger.warning("maintenance of old records failed: %s", other)
        if failed:
            raise failed[0]

    def _expire_if_due(self, topic: Topic, partition: int) -> None:
        if topic.config.expires:
            self._expire(topic, partition, None, wait=False)

    def _compact_if_due(self, topic: Topic, partition: int) -> None:
        if not topic.config.compacted:
            return
        now = self._clock()
        if not self._metadata.read(lambda txn: work_of(txn, topic, partition, now)).is_due:
            return
        with self._partition(topic, partition, wait=False) as directory:
            if directory is not None:
                Compactor(self._metadata, topic, partition, directory, now).run()

    def _expire(self, topic: Topic, partition: int, protect: int | None, *, wait: bool) -> int | None:
        """Expire old segments; return the new start of the partition, if it moved."""
        now = self._clock()

        def keep_from(txn: Transaction) -> int | None:
            recorded = retention.protected(txn).get((topic.name, partition))
            return min((offset for offset in (recorded, protect) if offset is not None), default=None)

        def expired(txn: Transaction) -> list[Segment]:
            return retention.expired_segments(txn, topic, partition, keep_from(txn), now)

        if not self._metadata.read(expired):
            return None
        root = self._root(topic)
        if root is not None:
            with self._partition(topic, partition, wait=wait) as directory:
                segments = self._metadata.read(expired) if directory is not None else []
                if directory is None or not segments:
                    return None
                moved = self._archiver(topic, partition, directory, root).move(segments)
            return moved[-1].end_offset if moved else None

        def expire(txn: Transaction) -> list[Segment]:
            catalog.get_topic(txn, topic.name, partition)
            return retention.expire(txn, topic, partition, keep_from(txn), now)

        gone = self._metadata.write(expire)
        directory = partition_directory(self._topics, topic.directory, partition)
        delete_files(segment_path(directory, segment.base_offset, segment.generation) for segment in gone)
        return gone[-1].end_offset if gone else None

    def _settled(self, topic: Topic, partition: int, ingested_before: int) -> list[Segment]:
        return self._metadata.read(lambda txn: sealed.settled_segments(txn, topic, partition, ingested_before))

    def _archiver(self, topic: Topic, partition: int, directory: Path, root: Path) -> Archiver:
        return Archiver(self._metadata, self._topics, topic, partition, directory, root)

    def _root(self, topic: Topic) -> Path | None:
        return None if topic.config.archive is None else archived.resolve(self._topics, topic.config.archive)

    def _topic(self, name: str) -> Topic:
        return self._metadata.read(lambda txn: catalog.get_topic(txn, name))

    def _wanted(self, name: str | None) -> list[Topic]:
        return [self._topic(name)] if name is not None else self._metadata.read(catalog.all_topics)

    @contextmanager
    def _partition(self, topic: Topic, partition: int, *, wait: bool) -> Iterator[Path | None]:
        """Return the directory of a partition under its maintenance lock; None if another process holds it."""
        directory = partition_directory(self._topics, topic.directory, partition)
        try:
            with upkeep_lock(directory, wait=wait) as free:
                yield directory if free else None
        except FileNotFoundError as error:
            found = self._metadata.read(lambda txn: catalog.find_topic(txn, topic.name))
            if found is None or found.id != topic.id:
                raise TopicNotFound(topic.name) from error
            raise LogError(
                f"a part of the log is missing: {error.filename}", hint="restore it from a backup"
            ) from error

"""Verify all of a topic: every frame of every segment, every index entry, every archive file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from potok.checksum import crc32
from potok.errors import LogError
from potok.log.embedded import catalog
from potok.log.embedded.catalog import IndexEntry, Segment, Topic
from potok.log.embedded.maintenance import archived
from potok.log.embedded.maintenance.archived import ArchivedSegment, read_archived
from potok.log.embedded.metadata import Metadata, Transaction
from potok.log.embedded.segments.assemble import Assembler
from potok.log.embedded.segments.frame import CHECKED, COMPACTED, HEADER, HEADER_SIZE, MAGIC
from potok.log.embedded.segments.read import read_segment
from potok.log.embedded.segments.segment import partition_directory, segment_path
from potok.log.errors import ArchiveDamaged, CorruptSegment


class CheckedPart(NamedTuple):
    """A verified file; `error` says what is wrong with it."""

    path: str
    records: int
    size: int
    error: LogError | None = None


def verify_topic(metadata: Metadata, topics: Path, name: str) -> Iterator[CheckedPart]:
    """Yield each file of a topic after reading it. Records that are appended meanwhile are not checked."""
    topic = metadata.read(lambda txn: catalog.get_topic(txn, name))
    for partition in range(topic.partitions):
        yield from _Partition(metadata, topics, topic, partition).check()


class _Partition:
    def __init__(self, metadata: Metadata, topics: Path, topic: Topic, partition: int) -> None:
        self._metadata, self._topics, self._topic, self._partition = metadata, topics, topic, partition
        self._directory = partition_directory(topics, topic.directory, partition)

    def check(self) -> Iterator[CheckedPart]:
        stored, segments, index = self._metadata.read(self._plan)
        for file in stored:
            yield self._archived(file)
        for segment in segments:
            found = self._segment(segment, [entry for entry in index if entry.segment_base == segment.base_offset])
            if found.error is None or self._metadata.read(lambda txn: self._is_there(txn, segment)):  # noqa: B023
                yield found

    def _plan(self, txn: Transaction) -> tuple[list[ArchivedSegment], list[Segment], list[IndexEntry]]:
        at = self._topic, self._partition
        return (
            archived.archived_segments(txn, *at),
            catalog.segments(txn, *at),
            list(catalog.index_from(txn, *at, 0)),
        )

    def _is_there(self, txn: Transaction, segment: Segment) -> bool:
        """Whether the segment still exists: retention, compaction or archiving may remove it while it is read."""
        topic = catalog.find_topic(txn, self._topic.name)
        if topic is None or topic.id != self._topic.id:
            return False
        there = catalog.segments(txn, topic, self._partition, segment.base_offset)
        return any((part.base_offset, part.generation) == (segment.base_offset, segment.generation) for part in there)

    def _segment(self, segment: Segment, index: list[IndexEntry]) -> CheckedPart:
        path = segment_path(self._directory, segment.base_offset, segment.generation)
        records = 0
        try:
            assembler = Assembler(segment.base_offset, segment.end_offset)
            for batch in read_segment(self._directory, segment, assembler):
                records += len(batch)
            if records != segment.held:
                raise CorruptSegment(path, segment.base_offset, 0, f"it has {records} records, not {segment.held}")
            for entry in index:
                _check_index(path, entry, segment)
        except LogError as error:
            return CheckedPart(str(path), records, segment.size, error)
        return CheckedPart(str(path), records, segment.size)

    def _archived(self, segment: ArchivedSegment) -> CheckedPart:
        path, records = archived.resolve(self._topics, segment.path), 0
        bounds = segment.base_offset, segment.end_offset
        try:
            for batch in read_archived(self._topics, segment, self._topic.name, *bounds):
                records += len(batch)
            if records != segment.records:
                why = f"it has {records} records, not {segment.records}"
                raise ArchiveDamaged(path, self._topic.name, *bounds, why)
        except LogError as error:
            return CheckedPart(str(path), records, segment.size, error)
        return CheckedPart(str(path), records, segment.size)


def _check_index(path: Path, entry: IndexEntry, segment: Segment) -> None:
    """Check that an entry points to the frame of its offset."""
    with path.open("rb") as file:
        head = os.pread(file.fileno(), HEADER_SIZE, entry.position)
    right = len(head) == HEADER_SIZE and entry.position < segment.size
    if right:
        magic, kind, *_, base, _, _, _, checked = HEADER.unpack(head)
        right = magic == MAGIC and crc32(head[:CHECKED]) == checked
        right = right and (base >= entry.offset if kind == COMPACTED else base == entry.offset)
    if not right:
        raise CorruptSegment(path, entry.offset, entry.position, "the index points to no frame there")

"""Read a range of offsets: the metadata says which bytes of which segments, and each frame is verified."""

from __future__ import annotations

import mmap
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from potok.checksum import crc32
from potok.log.embedded import catalog
from potok.log.embedded.catalog import PartitionState, Segment, Topic
from potok.log.embedded.maintenance import archived
from potok.log.embedded.maintenance.archived import ArchivedSegment, read_archived
from potok.log.embedded.metadata import Metadata, Transaction
from potok.log.embedded.segments.assemble import Assembler
from potok.log.embedded.segments.frame import ARROW, CHECKED, COMPACTED, HEADER, HEADER_SIZE, MAGIC, ROWS
from potok.log.embedded.segments.segment import partition_directory, segment_path
from potok.log.errors import CorruptSegment, OffsetOutOfRange

_MAP_FROM = 1 << 20
"""Larger ranges are mapped; for smaller ones reading is cheaper than a mapping."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes `position` to `limit` of a segment.

    The first frame starts at `offset`, or after it if the segment was compacted.
    """

    path: Path
    offset: int
    position: int
    limit: int


Piece = Extent | ArchivedSegment


def read_range(
    metadata: Metadata, topics: Path, name: str, partition: int, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    """Read a range, which is checked at once; the records are read as the result is consumed."""
    pieces = metadata.read(lambda txn: plan(txn, topics, name, partition, start, end))
    return _read(metadata, topics, pieces, name, partition, start, end)


def plan(txn: Transaction, topics: Path, name: str, partition: int, start: int, end: int) -> list[Piece]:
    topic = catalog.get_topic(txn, name, partition)
    state = catalog.get_state(txn, topic, partition)
    if start < state.start_offset:
        pieces = archived.covering(txn, topic, partition, start, min(end, state.start_offset))
    else:
        pieces = []
    if pieces is None or not 0 <= start <= end <= state.end_offset:
        earliest = archived.earliest(txn, topic, partition, state.start_offset)
        raise OffsetOutOfRange(name, partition, (start, end), (earliest, state.end_offset))
    if max(start, state.start_offset) >= end:
        return [*pieces]
    directory = partition_directory(topics, topic.directory, partition)
    return [*pieces, *_extents(txn, topic, partition, state, directory, start, end)]


def _extents(
    txn: Transaction, topic: Topic, partition: int, state: PartitionState, directory: Path, start: int, end: int
) -> Iterator[Extent]:
    entry = catalog.index_at_or_before(txn, topic, partition, max(start, state.start_offset))
    after = next(catalog.index_from(txn, topic, partition, end), None)
    # If compaction has emptied the first segments, there is no frame at or before the start.
    for segment in catalog.segments(txn, topic, partition, entry.segment_base if entry else 0):
        if segment.base_offset >= end:
            return
        if segment.size == 0:
            continue
        first = entry is not None and segment.base_offset == entry.segment_base
        last = after is not None and after.segment_base == segment.base_offset
        yield Extent(
            segment_path(directory, segment.base_offset, segment.generation),
            entry.offset if entry is not None and first else segment.base_offset,
            entry.position if entry is not None and first else 0,
            after.position if after is not None and last else segment.size,
        )


def load(extent: Extent) -> bytes | mmap.mmap:
    """Load the bytes of an extent; byte 0 of the result is `extent.position`, rounded down to a page for a mapping."""
    descriptor = os.open(extent.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size < extent.limit:
            # Accessing a mapping beyond the end of its file would kill the process.
            raise CorruptSegment(extent.path, extent.offset, size, f"it ends {extent.limit - size} bytes too early")
        if extent.limit - extent.position < _MAP_FROM:
            return os.pread(descriptor, extent.limit - extent.position, extent.position)
        begin = map_start(extent)
        mapped = mmap.mmap(descriptor, extent.limit - begin, access=mmap.ACCESS_READ, offset=begin)
        if hasattr(mmap, "MADV_SEQUENTIAL"):
            mapped.madvise(mmap.MADV_SEQUENTIAL)
        return mapped
    finally:
        os.close(descriptor)


def map_start(extent: Extent) -> int:
    """Return the position in the file of byte 0 of what `load` returns."""
    if extent.limit - extent.position < _MAP_FROM:
        return extent.position
    return extent.position // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY


def _read(
    metadata: Metadata, topics: Path, pieces: Sequence[Piece], name: str, partition: int, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    assembler = Assembler(start, end)
    waiting = deque(pieces)
    while waiting:
        piece = waiting.popleft()
        if isinstance(piece, ArchivedSegment):
            yield from assembler.finish()
            yield from read_archived(topics, piece, name, start, end)
            continue
        try:
            data = load(piece)
        except FileNotFoundError:
            start = max(start, piece.offset)
            waiting = deque(_reopened(metadata, topics, piece, name, partition, start, end))
            assembler.go_on_at(start)
            continue
        yield from read_extent(piece, data, assembler, start, end)
    yield from assembler.finish()


def read_extent(
    extent: Extent, data: bytes | mmap.mmap, assembler: Assembler, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    """Pass the frames of an extent to the assembler; the caller finishes what it still holds at the end."""
    begin = map_start(extent)
    position, limit, offset = extent.position - begin, extent.limit - begin, extent.offset
    view, buffer = memoryview(data), pa.py_buffer(data)
    unpack = HEADER.unpack_from
    while position < limit and offset < end:
        if limit - position < HEADER_SIZE:
            raise CorruptSegment(extent.path, offset, begin + position, "a frame is truncated")
        magic, kind, flags, _, count, size, body_crc, base, ingested, _, _, header_crc = unpack(view, position)
        body = position + HEADER_SIZE
        misplaced = base < offset if kind == COMPACTED else base != offset
        if magic != MAGIC or crc32(view[position : position + CHECKED]) != header_crc or misplaced:
            raise CorruptSegment(extent.path, offset, begin + position, "the header of a frame does not match")
        offset = base + count
        if offset > start or kind == COMPACTED:
            if body + size > limit or crc32(view[body : body + size]) != body_crc:
                raise CorruptSegment(extent.path, base, begin + position, "the checksum does not match")
            if assembler.must_finish_before(size, count):
                yield from assembler.finish()
            if kind == ROWS:
                assembler.add_rows(data, body, size, count, base, ingested)  # type: ignore[arg-type]
            elif kind == ARROW:
                assembler.add_arrow(buffer.slice(body, size), flags, count, base, ingested)
            elif kind == COMPACTED:
                offset = assembler.add_compacted(buffer.slice(body, size), flags, count, ingested)
            else:
                raise CorruptSegment(extent.path, base, begin + position, f"frames of kind {kind} are not known")
        position = body + size


def read_segment(directory: Path, segment: Segment, assembler: Assembler) -> Iterator[pa.RecordBatch]:
    """Yield all records of a segment; the caller prevents its replacement."""
    if segment.size == 0:
        return
    path = segment_path(directory, segment.base_offset, segment.generation)
    extent = Extent(path, segment.base_offset, 0, segment.size)
    try:
        data = load(extent)
    except FileNotFoundError as error:
        raise CorruptSegment(path, segment.base_offset, 0, "the file is missing") from error
    yield from read_extent(extent, data, assembler, segment.base_offset, segment.end_offset)
    yield from assembler.finish()


def _reopened(
    metadata: Metadata, topics: Path, lost: Extent, name: str, partition: int, start: int, end: int
) -> list[Piece]:
    """Return where to continue if a segment was compacted or archived meanwhile.

    Otherwise raise the reason: the topic was deleted, retention deleted the segment, or it was lost.
    """

    def again(txn: Transaction) -> list[Piece]:
        topic = catalog.get_topic(txn, name, partition)
        if lost.path.parent.parent.name != topic.directory:
            state = catalog.get_state(txn, topic, partition)
            raise OffsetOutOfRange(name, partition, (start, end), (state.start_offset, state.end_offset))
        return plan(txn, topics, name, partition, start, end)

    pieces = metadata.read(again)
    if any(isinstance(piece, Extent) and piece.path == lost.path for piece in pieces):
        raise CorruptSegment(lost.path, lost.offset, 0, "the file is missing")
    return pieces


def offset_at(metadata: Metadata, topics: Path, name: str, partition: int, timestamp_ms: int) -> int:
    """Return the first offset at or after a time. The index narrows it down to the frames between two entries."""

    def narrow(since: int) -> tuple[int, int]:
        return metadata.read(lambda txn: _narrow(txn, name, partition, timestamp_ms, since))

    start, end = narrow(0)
    while start < end:
        for batch in read_range(metadata, topics, name, partition, start, end):
            reached = np.flatnonzero(batch.column("timestamp").to_numpy() >= timestamp_ms)
            if len(reached):
                return int(batch.column("offset")[int(reached[0])].as_py())
        # Compaction has removed the record; another one may follow.
        start, end = narrow(end)
    return end


def _narrow(txn: Transaction, name: str, partition: int, timestamp_ms: int, since: int) -> tuple[int, int]:
    """Return the offsets between which the result is, or twice the end offset if no record is that late."""
    topic = catalog.get_topic(txn, name, partition)
    state = catalog.get_state(txn, topic, partition)
    for segment in catalog.segments(txn, topic, partition):
        if segment.max_timestamp < timestamp_ms or segment.end_offset <= since:
            continue
        start = max(segment.base_offset, state.start_offset, since)
        for entry in catalog.index_from(txn, topic, partition, segment.base_offset):
            if entry.offset >= segment.end_offset:
                break
            if entry.max_timestamp >= timestamp_ms and entry.offset > start:
                return start, entry.offset
            start = max(start, entry.offset)
        return start, segment.end_offset
    return state.end_offset, state.end_offset

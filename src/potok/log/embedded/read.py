"""Reading a range of offsets: the metadata says which bytes of which segments, the frames are checked one by one."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pyarrow as pa

from potok.log.embedded import catalog
from potok.log.embedded.assemble import Assembler
from potok.log.embedded.frame import ARROW, CHECKED, HEADER, HEADER_SIZE, MAGIC, ROWS
from potok.log.embedded.metadata import Metadata, Transaction
from potok.log.embedded.segment import partition_directory, segment_path
from potok.log.errors import CorruptSegment, OffsetOutOfRange

_MAP_FROM = 1 << 20
"""Ranges from this size on are mapped; for smaller ones reading is cheaper than a mapping."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes `position` to `limit` of a segment; the first frame there begins at `offset`."""

    path: Path
    offset: int
    position: int
    limit: int


def read_range(
    metadata: Metadata, topics: Path, name: str, partition: int, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    """Checks the range at once; the records are read as the result is consumed."""
    extents = metadata.read(lambda txn: plan(txn, topics, name, partition, start, end))
    return _read(metadata, extents, name, partition, start, end)


def plan(txn: Transaction, topics: Path, name: str, partition: int, start: int, end: int) -> list[Extent]:
    topic = catalog.get_topic(txn, name, partition)
    state = catalog.get_state(txn, topic, partition)
    if not state.start_offset <= start <= end <= state.end_offset:
        raise OffsetOutOfRange(name, partition, (start, end), (state.start_offset, state.end_offset))
    entry = catalog.index_at_or_before(txn, topic, partition, start)
    if start == end or entry is None:
        return []
    directory = partition_directory(topics, topic.directory, partition)
    after = next(catalog.index_from(txn, topic, partition, end), None)
    extents = []
    for segment in catalog.segments(txn, topic, partition, entry.segment_base):
        if segment.base_offset >= end:
            break
        first = segment.base_offset == entry.segment_base
        last = after is not None and after.segment_base == segment.base_offset
        extents.append(
            Extent(
                segment_path(directory, segment.base_offset),
                entry.offset if first else segment.base_offset,
                entry.position if first else 0,
                after.position if after is not None and last else segment.size,
            )
        )
    return extents


def load(extent: Extent) -> bytes | mmap.mmap:
    """The bytes of an extent; byte 0 of the result is `extent.position` rounded down to a page for a mapping."""
    descriptor = os.open(extent.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size < extent.limit:
            # Touching a mapping behind the end of its file would kill the process.
            raise CorruptSegment(extent.path, extent.offset, size, f"it ends {extent.limit - size} bytes too early")
        if extent.limit - extent.position < _MAP_FROM:
            return os.pread(descriptor, extent.limit - extent.position, extent.position)
        begin = map_begin(extent)
        mapped = mmap.mmap(descriptor, extent.limit - begin, access=mmap.ACCESS_READ, offset=begin)
        if hasattr(mmap, "MADV_SEQUENTIAL"):
            mapped.madvise(mmap.MADV_SEQUENTIAL)
        return mapped
    finally:
        os.close(descriptor)


def map_begin(extent: Extent) -> int:
    """The position in the file of byte 0 of what `load` returns."""
    if extent.limit - extent.position < _MAP_FROM:
        return extent.position
    return extent.position // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY


def _read(
    metadata: Metadata, extents: list[Extent], name: str, partition: int, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    assembler = Assembler(start, end)
    for extent in extents:
        try:
            data = load(extent)
        except FileNotFoundError:
            _explain_missing(metadata, extent, name, partition, max(start, extent.offset), end)
            raise
        yield from _read_extent(extent, data, assembler, start, end)
    yield from assembler.finish()


def _read_extent(
    extent: Extent, data: bytes | mmap.mmap, assembler: Assembler, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    begin = map_begin(extent)
    position, limit, offset = extent.position - begin, extent.limit - begin, extent.offset
    view, buffer = memoryview(data), pa.py_buffer(data)
    unpack = HEADER.unpack_from
    while position < limit and offset < end:
        if limit - position < HEADER_SIZE:
            raise CorruptSegment(extent.path, offset, begin + position, "a frame is cut off")
        magic, kind, flags, _, count, size, body_crc, base, ingested, _, _, header_crc = unpack(view, position)
        body = position + HEADER_SIZE
        if magic != MAGIC or crc32(view[position : position + CHECKED]) != header_crc or base != offset:
            raise CorruptSegment(extent.path, offset, begin + position, "the header of a frame does not match")
        if offset + count > start:
            if body + size > limit or crc32(view[body : body + size]) != body_crc:
                raise CorruptSegment(extent.path, offset, begin + position, "the checksum does not match")
            if assembler.must_finish_before(size, count):
                yield from assembler.finish()
            if kind == ROWS:
                assembler.add_rows(data, body, size, count, base, ingested)  # type: ignore[arg-type]
            elif kind == ARROW:
                assembler.add_arrow(buffer.slice(body, size), flags, count, base, ingested)
            else:
                raise CorruptSegment(extent.path, offset, begin + position, f"frames of kind {kind} are not known")
        position = body + size
        offset += count


def _explain_missing(metadata: Metadata, extent: Extent, name: str, partition: int, start: int, end: int) -> None:
    """Raise the reason why a segment is gone: its topic was deleted, or retention took it, or it was lost."""

    def check(txn: Transaction) -> None:
        topic = catalog.get_topic(txn, name, partition)
        state = catalog.get_state(txn, topic, partition)
        if extent.offset < state.start_offset or extent.path.parent.parent.name != topic.directory:
            raise OffsetOutOfRange(name, partition, (start, end), (state.start_offset, state.end_offset))

    metadata.read(check)
    raise CorruptSegment(extent.path, extent.offset, 0, "the file is missing")

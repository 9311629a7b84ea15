"""Archived segments: their metadata, and how their records are read.

An archived segment is a Parquet file `<archive>/<topic>-<id>/<partition>/<base offset>.parquet` with the columns of
READ_SCHEMA and `partition`. Any tool that reads Parquet can read it; the names sort by offset.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from potok.checksum import crc32
from potok.log.broker import READ_SCHEMA
from potok.log.embedded import catalog
from potok.log.embedded.catalog import Topic
from potok.log.embedded.metadata import Transaction
from potok.log.errors import ArchiveDamaged
from potok.log.maintenance import InvalidTopicConfig

ARCHIVE_SCHEMA = READ_SCHEMA.append(pa.field("partition", pa.int32()))

_BASE = struct.Struct(">Q")


class ArchivedSegment(NamedTuple):
    """`path` is relative to the log's own directory if the archive is inside it, so that both can be moved.

    `sums` holds the end and the checksum of each part of the file: each row group, then the footer. Parquet's own
    checksums cover only values. An archive of version 0.1 has none.
    """

    base_offset: int
    end_offset: int
    records: int
    size: int
    path: str
    sums: Sequence[tuple[int, int]] = ()


def root_of(topic: str, directory: str | Path) -> Path:
    """Return the absolute directory of an archive."""
    if "://" in str(directory):
        raise InvalidTopicConfig(
            topic, f'"{directory}" is not a directory', "name a directory that this machine can write"
        )
    try:
        return Path(directory).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidTopicConfig(topic, f'"{directory}" cannot be used: {error}', "name another directory") from error


def archive_directory(root: Path, topic: Topic, partition: int) -> Path:
    return root / topic.directory / str(partition)


def file_name(base_offset: int) -> str:
    return f"{base_offset:020d}.parquet"


def put(txn: Transaction, topic: Topic, partition: int, segment: ArchivedSegment) -> None:
    key = catalog.partition_key(b"a", topic.id, partition) + _BASE.pack(segment.base_offset)
    txn.put(key, orjson.dumps(segment[1:]))
    txn.put(b"v", catalog.LATER_FORMAT)


def archived_segments(txn: Transaction, topic: Topic, partition: int) -> list[ArchivedSegment]:
    """Return the archived segments, oldest first."""
    prefix = catalog.partition_key(b"a", topic.id, partition)
    return [
        ArchivedSegment(_BASE.unpack_from(key, len(prefix))[0], *orjson.loads(value))
        for key, value in catalog.scan(txn, prefix)
    ]


def earliest(txn: Transaction, topic: Topic, partition: int, start_offset: int) -> int:
    """Return the first offset of the records that precede the log start without a gap."""
    for segment in reversed(archived_segments(txn, topic, partition)):
        if segment.end_offset != start_offset:
            break
        start_offset = segment.base_offset
    return start_offset


def covering(txn: Transaction, topic: Topic, partition: int, start: int, end: int) -> list[ArchivedSegment] | None:
    """Return the archived segments that together hold offsets `start` to `end`; None if some are missing."""
    found = [
        segment
        for segment in archived_segments(txn, topic, partition)
        if segment.base_offset < end and segment.end_offset > start
    ]
    reached = start
    for segment in found:
        if segment.base_offset > reached:
            return None
        reached = segment.end_offset
    return found if reached >= end else None


def read_archived(topics: Path, segment: ArchivedSegment, topic: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """Yield the records of a file between two offsets; `topics` is the log's directory of topics."""
    path = resolve(topics, segment.path)
    try:
        _check_part(path, segment, -1)
        with pq.ParquetFile(path, memory_map=True, page_checksum_verification=True) as file:
            for group in range(file.num_row_groups):
                if _overlaps(file, group, start, end):
                    _check_part(path, segment, group)
                    yield from _between(file.read_row_group(group, columns=READ_SCHEMA.names), start, end)
    except FileNotFoundError as error:
        raise ArchiveDamaged(path, topic, segment.base_offset, segment.end_offset, "the file is missing") from error
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise ArchiveDamaged(path, topic, segment.base_offset, segment.end_offset, str(error)) from error


def _check_part(path: Path, segment: ArchivedSegment, part: int) -> None:
    size = path.stat().st_size
    if size != segment.size:
        raise ValueError(f"it has {size} bytes, not {segment.size}")
    if segment.sums:
        part = part % len(segment.sums)
        start = segment.sums[part - 1][0] if part else 0
        end, right = segment.sums[part]
        if _sum(path, start, end) != right:
            raise ValueError(f"the checksum of bytes {start} to {end} does not match")


def part_sums(path: Path) -> list[tuple[int, int]]:
    """Compute the checksums of a file that was just written."""
    described = pq.read_metadata(path)
    size = path.stat().st_size
    groups = [described.row_group(number).column(0) for number in range(described.num_row_groups)]
    starts = [column.dictionary_page_offset or column.data_page_offset for column in groups]
    with path.open("rb") as file:
        file.seek(size - 8)
        footer = size - 8 - int.from_bytes(file.read(4), "little")
    ends = [*starts[1:], footer, size] if groups else [size]
    begins = [0, *ends]
    return [(end, _sum(path, begin, end)) for begin, end in zip(begins, ends, strict=False)]


def _sum(path: Path, start: int, end: int) -> int:
    found = 0
    with path.open("rb") as file:
        file.seek(start)
        while start < end and (part := file.read(min(1 << 20, end - start))):
            found, start = crc32(part, found), start + len(part)
    return found


def resolve(topics: Path, path: str) -> Path:
    """Convert a path of the metadata into an absolute path."""
    return data_directory(topics) / path


def portable(topics: Path, path: Path) -> str:
    """Convert a path for the metadata."""
    inside = data_directory(topics)
    return str(path.relative_to(inside)) if path.is_relative_to(inside) else str(path)


def data_directory(topics: Path) -> Path:
    """`topics` is `<data>/log/topics`."""
    return topics.parent.parent


def _overlaps(file: pq.ParquetFile, group: int, start: int, end: int) -> bool:
    statistics = file.metadata.row_group(group).column(file.schema.names.index("offset")).statistics
    return statistics is None or (statistics.min < end and statistics.max >= start)


def _between(table: pa.Table, start: int, end: int) -> Iterator[pa.RecordBatch]:
    for batch in table.cast(READ_SCHEMA).combine_chunks().to_batches():
        first, last = np.searchsorted(batch.column("offset").to_numpy(), (start, end)).tolist()
        if first < last:
            yield batch.slice(first, last - first)

"""Rewrite sealed segments without some of their records; the others keep their offsets.

Adjacent segments become one file with a new name; one transaction replaces the others with it, and these are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from potok.checksum import crc32
from potok.log.embedded import catalog
from potok.log.embedded.catalog import IndexEntry, Segment, Topic
from potok.log.embedded.locks import partition_locks
from potok.log.embedded.maintenance.key_map import Ints
from potok.log.embedded.metadata import Metadata, Transaction
from potok.log.embedded.segments import sealed
from potok.log.embedded.segments.assemble import COMPACTED_SCHEMA, COMPACTED_WITH_HEADERS, Assembler
from potok.log.embedded.segments.encode import FRAME_RECORDS
from potok.log.embedded.segments.frame import COMPACTED, WITH_HEADERS, Frame
from potok.log.embedded.segments.read import read_segment
from potok.log.embedded.segments.segment import SegmentFile, delete_files, segment_path, sweep, sync_directory
from potok.log.errors import CorruptSegment
from potok.log.failpoint import failpoint

Flags = npt.NDArray[np.bool_]

Choice = Callable[[pa.RecordBatch, Ints], tuple[Flags, Ints]]
"""Which records of a batch stay, and when each was first seen as a tombstone, given the earlier knowledge."""

_UNFINISHED = ".compacting"


class Overtaken(Exception):
    """The segments were changed concurrently; their replacements were not read."""


class Rewriter:
    """Rewrites segments of one partition. Used under its maintenance lock."""

    def __init__(self, metadata: Metadata, topic: Topic, partition: int, directory: Path) -> None:
        self._metadata, self._topic, self._partition, self._directory = metadata, topic, partition, directory

    def tidy(self) -> None:
        """Remove files of an interrupted rewrite."""
        delete_files(self._directory.glob(f"*{_UNFINISHED}"))

    def rewrite(self, group: Sequence[Segment], choose: Choice) -> None:
        """Merge adjacent segments into one file; skip a segment that would not change."""
        base, generation = group[0].base_offset, max(segment.generation for segment in group) + 1
        final = segment_path(self._directory, base, generation)
        file = CompactedFile(final.with_suffix(_UNFINISHED), base)
        changed = len(group) > 1
        try:
            for segment in group:
                for batch, seen in self.batches(segment):
                    stays, since = choose(batch, seen)
                    changed |= not stays.all() or bool(np.any(since != seen))
                    file.add(batch.filter(pa.array(stays)), since[stays])
            failpoint("log.compact.written")
            if changed:
                file.finish()
                failpoint("log.compact.synced")
                self._swap(group, file, final, generation)
        finally:
            file.close()
            file.discard()

    def batches(self, segment: Segment) -> Iterator[tuple[pa.RecordBatch, Ints]]:
        """Yield the records of a segment, and when each was first seen as a tombstone; 0 if it was not."""
        assembler = Assembler(segment.base_offset, segment.end_offset)
        try:
            for batch in read_segment(self._directory, segment, assembler):
                yield batch, _seen(batch, assembler)
        except CorruptSegment as error:
            if self._metadata.read(lambda txn: sealed.still_there(txn, self._topic, self._partition, [segment])):
                raise
            raise Overtaken from error

    def _swap(self, group: Sequence[Segment], file: CompactedFile, final: Path, generation: int) -> None:
        instead = Segment(
            group[0].base_offset,
            group[-1].end_offset,
            file.size,
            file.max_timestamp,
            max(segment.last_ingested for segment in group),
            generation,
            file.records,
            file.tombstone_since,
        )

        def swap(txn: Transaction) -> set[Path]:
            if not sealed.still_there(txn, self._topic, self._partition, group):
                raise Overtaken
            sealed.replace_segments(txn, self._topic, self._partition, group, instead)
            for entry in file.index:
                catalog.put_index(txn, self._topic, self._partition, entry)
            txn.put(b"v", catalog.LATER_FORMAT)
            return sealed.known_paths(txn, self._topic, self._partition, self._directory)

        # An appender that seals a segment deletes files that are not in the metadata, so appends must be blocked
        # between the rename and the transaction.
        with partition_locks([self._directory]):
            if file.size:
                file.path.rename(final)
                sync_directory(self._directory)
            failpoint("log.compact.renamed")
            try:
                known = self._metadata.write(swap)
            except Overtaken:
                final.unlink(missing_ok=True)
                raise
            failpoint("log.compact.committed")
            sweep(self._directory, known)
        failpoint("log.compact.deleted")


def tombstones(batch: pa.RecordBatch) -> Flags:
    marked = pc.and_(batch.column("value").is_null(), batch.column("key").is_valid())
    return np.asarray(marked.to_numpy(zero_copy_only=False), np.bool_)


def _seen(batch: pa.RecordBatch, assembler: Assembler) -> Ints:
    """Return when the tombstones of a batch were first seen, from the headers of their frames."""
    found = tombstones(batch)
    if not assembler.tombstones_since or not found.any():
        return np.zeros(len(batch), np.int64)
    behind, since = np.array(assembler.tombstones_since, np.int64).T
    return np.where(found, since[np.searchsorted(behind, batch.column("offset").to_numpy(), side="right")], 0)


FRAME_BYTES = 4 << 20
"""Smaller than the frames of appends: a reader of one record decodes the whole frame."""


class CompactedFile:
    """Takes batches of READ_SCHEMA in offset order and writes frames.

    All tombstones of a frame were first seen at one time, which is in its header. Compaction processes a log from its
    start, so these times grow with the offsets, and few frames are split because of them.
    """

    def __init__(self, path: Path, base_offset: int) -> None:
        self.path = path
        self.size = 0
        self.records = 0
        self.max_timestamp = catalog.NEVER
        self.tombstone_since = 0
        self.index: list[IndexEntry] = []
        self._base = base_offset
        self._file = SegmentFile.create(path)
        self._pending: list[pa.RecordBatch] = []
        self._pending_records = 0
        self._pending_bytes = 0
        self._pending_since = 0

    def add(self, batch: pa.RecordBatch, since: Ints) -> None:
        """Add a batch; `since` is when each record was first seen as a tombstone, 0 for other records."""
        for piece, at in _pieces(batch, since):
            changes = at and self._pending_since and at != self._pending_since
            full = (
                self._pending_records + len(piece) > FRAME_RECORDS or self._pending_bytes + piece.nbytes > FRAME_BYTES
            )
            if changes or full:
                self._write_frame()
            self._pending.append(piece)
            self._pending_records += len(piece)
            self._pending_bytes += piece.nbytes
            self._pending_since = at or self._pending_since

    def finish(self) -> None:
        """Write the rest and make all of it durable."""
        self._write_frame()
        self._file.sync()

    def close(self) -> None:
        self._file.close()

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)

    def _write_frame(self) -> None:
        if not self._pending:
            return
        batch = pa.concat_batches(self._pending)
        bare = batch.column("headers").null_count == len(batch)
        schema = COMPACTED_SCHEMA if bare else COMPACTED_WITH_HEADERS
        body = batch.select(schema.names).serialize()
        times = pc.min_max(batch.column("timestamp"))
        earliest, latest = times["min"].as_py(), times["max"].as_py()
        flags = 0 if bare else WITH_HEADERS
        frame = Frame(COMPACTED, flags, len(batch), body.size, crc32(body), earliest, latest)
        offset = batch.column("offset")[0].as_py()
        self.index.append(IndexEntry(offset, self._base, self.size, self.max_timestamp))
        self._file.write([frame.header(offset, self._pending_since), body])
        self.size += frame.size
        self.records += len(batch)
        self.max_timestamp = max(self.max_timestamp, latest)
        seen = [at for at in (self.tombstone_since, self._pending_since) if at]
        self.tombstone_since = min(seen, default=0)
        self._pending = []
        self._pending_records = self._pending_bytes = self._pending_since = 0


def _pieces(batch: pa.RecordBatch, since: Ints) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Split the batch where tombstones of another time start, and by frame size; yield the time of each chunk."""
    tombstones = np.flatnonzero(since)
    changes = tombstones[1:][np.diff(since[tombstones]) != 0].tolist() if len(tombstones) else []
    most = max(1, len(batch) * FRAME_BYTES // max(batch.nbytes, 1))
    for start, end in zip([0, *changes], [*changes, len(batch)], strict=True):
        for at in range(start, end, most):
            stop = min(at + most, end)
            yield batch.slice(at, stop - at), int(since[at:stop].max())

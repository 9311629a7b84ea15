"""Write a compacted segment: the remainder of several, with the offset and the ingestion time of each record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.checksum import crc32
from potok.log.embedded import catalog
from potok.log.embedded.catalog import IndexEntry
from potok.log.embedded.maintenance.key_map import Ints
from potok.log.embedded.segments.assemble import COMPACTED_SCHEMA, COMPACTED_WITH_HEADERS
from potok.log.embedded.segments.encode import FRAME_RECORDS
from potok.log.embedded.segments.frame import COMPACTED, WITH_HEADERS, Frame
from potok.log.embedded.segments.segment import SegmentFile

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

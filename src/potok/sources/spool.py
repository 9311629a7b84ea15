"""What a buffer on disk does not keep in memory: records in files without names, which end with the process."""

from __future__ import annotations

import os
import tempfile
import threading
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

SEGMENT_BYTES = 64 << 20
"""A file of this size gets no more records, and is given up once all of its records were read."""


@dataclass(slots=True, eq=False)
class _Segment:
    file: IO[bytes]
    size: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class Spilled:
    """Some records on disk."""

    segment: _Segment
    start: int
    size: int
    count: int

    def __len__(self) -> int:
        return self.count


class Spool:
    """Writes records at the end of a file, and reads each once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: _Segment | None = None

    def write(self, batch: pa.RecordBatch) -> Spilled:
        """Write records. Raises `OSError` if the disk is full."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data = sink.getvalue()
        with self._lock:
            segment = self._current
            if segment is None or segment.size >= SEGMENT_BYTES:
                segment = self._next()
            start = segment.size
            written = 0
            while written < len(data):
                written += os.pwrite(segment.file.fileno(), data[written:], start + written)
            segment.size += len(data)
            segment.left += 1
        return Spilled(segment, start, len(data), len(batch))

    def read(self, spilled: Spilled) -> pa.RecordBatch:
        """Read records for the last time. Raises `OSError` or `ArrowException` if they cannot be read."""
        try:
            data = os.pread(spilled.segment.file.fileno(), spilled.size, spilled.start)
        finally:
            self.forget(spilled)
        with pa.ipc.open_stream(data) as reader:
            return reader.read_next_batch()

    def forget(self, spilled: Spilled) -> None:
        """Note that some records will not be read any more."""
        segment = spilled.segment
        with self._lock:
            segment.left -= 1
            if segment.left or segment.size < SEGMENT_BYTES:
                return
            if segment is self._current:
                self._current = None
        segment.file.close()

    def _next(self) -> _Segment:
        self._current = _Segment(tempfile.TemporaryFile(prefix="potok-gateway-"))  # noqa: SIM115 - closed with its last record
        return self._current

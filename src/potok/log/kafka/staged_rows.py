"""Output of a task until it is published: rows as Arrow, in memory or in a file."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from potok.log.broker import Staged
from potok.log.embedded.metadata import NO_ROOM
from potok.log.errors import DiskFull
from potok.permissions import private_directory, write_private

INLINE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class StagedRows(Staged):
    """Rows from `normalised`, in `data` or in a file."""

    data: bytes = b""
    path: str | None = None

    def rows(self) -> pa.RecordBatch:
        data = pa.memory_map(self.path) if self.path is not None else pa.py_buffer(self.data)
        with pa.ipc.open_stream(data) as stream:
            return stream.read_next_batch()

    def remove(self) -> None:
        if self.path is not None:
            Path(self.path).unlink(missing_ok=True)


def stage_rows(directory: Path | None, topic: str, partition: int, batch: pa.RecordBatch) -> StagedRows:
    """Keep small output inline, and write larger output to a file, without sync: an unpublished batch is run again."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data = sink.getvalue()
    if directory is None or data.size < INLINE_BYTES:
        return StagedRows(topic, partition, len(batch), data.size, data.to_pybytes())
    path = directory / f"{uuid.uuid4().hex}.staged"
    try:
        private_directory(directory)
        write_private(path, data)
    except OSError as error:
        path.unlink(missing_ok=True)
        if error.errno in NO_ROOM:
            raise DiskFull(path, os.strerror(error.errno)) from error
        raise
    return StagedRows(topic, partition, len(batch), data.size, path=str(path))

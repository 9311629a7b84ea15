"""Segment files: their paths, and appending frames."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from potok.errors import LogError
from potok.log.embedded.metadata import NO_ROOM
from potok.log.errors import CorruptSegment, DiskFull
from potok.permissions import FILE_MODE

sync_data = getattr(os, "fdatasync", os.fsync)
"""macOS has no fdatasync."""

_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS)

_VECTOR = 512
"""Buffers per call; systems allow 1024 and more."""


# Called several times with every append, and joining paths is slower than a cache.
@lru_cache(maxsize=4096)
def partition_directory(topics: Path, topic_directory: str, partition: int) -> Path:
    return topics / topic_directory / str(partition)


@lru_cache(maxsize=4096)
def segment_path(directory: Path, base_offset: int, generation: int = 0) -> Path:
    """Return the path of a segment; a compacted one has another name, so readers of the original are unaffected."""
    return directory / f"{base_offset:020d}{f'-{generation}' if generation else ''}.segment"


def sync_directory(directory: Path) -> None:
    """Make the names of new files durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def delete_files(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


class SegmentFile:
    """A segment being appended to, from its committed end on."""

    def __init__(self, directory: Path, base_offset: int, position: int, *, linked: bool = False) -> None:
        self.path = segment_path(directory, base_offset)
        self._created = position == 0 or linked
        if position or linked:
            self._descriptor = _open_at(self.path, base_offset, position)
        else:
            self._descriptor = _create(self.path)

    @classmethod
    def create(cls, path: Path) -> SegmentFile:
        """Create a file that is not a segment yet."""
        made = cls.__new__(cls)
        made.path, made._created, made._descriptor = path, True, _create(path)
        return made

    def write(self, buffers: Sequence[bytes | memoryview | pa.Buffer]) -> None:
        pending = [memoryview(buffer) for buffer in buffers]
        first = 0
        try:
            while first < len(pending):
                written = os.writev(self._descriptor, pending[first : first + _VECTOR])
                while first < len(pending) and written >= len(pending[first]):
                    written -= len(pending[first])
                    first += 1
                if written:
                    pending[first] = pending[first][written:]
        except OSError as error:
            raise self._translated(error) from error

    def write_at(self, position: int, data: bytes) -> None:
        try:
            os.pwrite(self._descriptor, data, position)
        except OSError as error:
            raise self._translated(error) from error

    def sync(self) -> None:
        try:
            sync_data(self._descriptor)
            if self._created:
                sync_directory(self.path.parent)
        except OSError as error:
            raise self._translated(error) from error

    def truncate(self, position: int) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, position)

    def close(self) -> None:
        os.close(self._descriptor)

    def _translated(self, error: OSError) -> LogError | FileNotFoundError:
        if isinstance(error, FileNotFoundError):
            return error
        if error.errno in NO_ROOM:
            return DiskFull(self.path, str(error.strerror))
        return LogError(f"cannot write {self.path}: {error.strerror}", hint="nothing was appended; check the disk")


def link_segment(directory: Path, base_offset: int, staged: Path) -> bool:
    """Link a staged file as a segment, sharing its bytes; return False if the file system does not support it."""
    path = segment_path(directory, base_offset)
    path.unlink(missing_ok=True)
    try:
        os.link(staged, path)
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True


def _create(path: Path) -> int:
    # An existing file is from an uncommitted write. It may share its bytes with a staged file, so unlink it instead of
    # truncating it.
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)


def _open_at(path: Path, base_offset: int, position: int) -> int:
    """Open a segment at its committed end; truncate what was never committed."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        if not path.parent.exists():
            raise
        raise CorruptSegment(path, base_offset, 0, "the file is missing") from None
    size = os.fstat(descriptor).st_size
    if size < position:
        os.close(descriptor)
        raise CorruptSegment(path, base_offset, size, f"it ends {position - size} bytes too early")
    if size > position:
        os.ftruncate(descriptor, position)
    os.lseek(descriptor, position, os.SEEK_SET)
    return descriptor


def sweep(directory: Path, known: Collection[Path]) -> None:
    """Delete segment files that are not in the metadata. Only for the holder of the partition lock."""
    delete_files(path for path in directory.glob("*.segment") if path not in known)

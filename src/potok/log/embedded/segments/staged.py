"""Encoded output before its commit: of an append, in memory, or of a task, picklable."""

from __future__ import annotations

import mmap
import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from potok.log.broker import Staged
from potok.log.embedded.metadata import NO_ROOM
from potok.log.embedded.segments.encode import EncodedFrame
from potok.log.embedded.segments.frame import HEADER_SIZE, Frame
from potok.log.embedded.segments.segment import sync_data, sync_directory
from potok.log.errors import DiskFull
from potok.permissions import private_directory, private_opener

INLINE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Unstaged(Staged):
    """The frames of an append, in the memory of this process."""

    frames: list[EncodedFrame] = field(default_factory=list)

    def encoded(self) -> Iterator[EncodedFrame]:
        return iter(self.frames)


@dataclass(frozen=True, slots=True)
class StagedFrames(Staged):
    """Frames whose bodies are in `data`, or in a file with space for each header."""

    frames: tuple[Frame, ...] = ()
    data: bytes = b""
    path: str | None = None

    def encoded(self) -> Iterator[EncodedFrame]:
        if self.path is None:
            yield from self._slices(memoryview(self.data), 0)
            return
        with open(self.path, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        yield from self._slices(memoryview(mapped), HEADER_SIZE)

    def _slices(self, view: memoryview, gap: int) -> Iterator[EncodedFrame]:
        position = 0
        for frame in self.frames:
            position += gap
            yield frame, view[position : position + frame.body_size]
            position += frame.body_size

    def remove(self) -> None:
        if self.path is not None:
            Path(self.path).unlink(missing_ok=True)


def in_memory(topic: str, partition: int, frames: Iterable[EncodedFrame]) -> Unstaged:
    listed = list(frames)
    count = sum(frame.count for frame, _ in listed)
    return Unstaged(topic, partition, count, sum(frame.size for frame, _ in listed), listed)


def stage_frames(directory: Path | None, topic: str, partition: int, encoded: Iterable[EncodedFrame]) -> StagedFrames:
    """Keep small output inline; write larger output to a file and make it durable."""
    unstaged = in_memory(topic, partition, encoded)
    frames = tuple(frame for frame, _ in unstaged.frames)
    if directory is None or unstaged.size < INLINE_BYTES:
        data = b"".join(memoryview(body) for _, body in unstaged.frames)
        return StagedFrames(topic, partition, unstaged.count, unstaged.size, frames, data)
    path = directory / f"{uuid.uuid4().hex}.staged"
    try:
        _write(path, unstaged.frames)
    except OSError as error:
        path.unlink(missing_ok=True)
        if error.errno in NO_ROOM:
            raise DiskFull(path, os.strerror(error.errno)) from error
        raise
    return StagedFrames(topic, partition, unstaged.count, unstaged.size, frames, path=str(path))


def _write(path: Path, frames: list[EncodedFrame]) -> None:
    private_directory(path.parent)
    gap = bytes(HEADER_SIZE)
    with open(path, "xb", opener=private_opener) as file:
        for _, body in frames:
            file.write(gap)
            file.write(memoryview(body) if isinstance(body, pa.Buffer) else body)
        file.flush()
        sync_data(file.fileno())
    sync_directory(path.parent)

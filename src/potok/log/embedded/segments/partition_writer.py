"""Append frames to one partition, roll segments, and record both in the metadata."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pyarrow as pa

from potok.errors import LogError
from potok.log.embedded import catalog
from potok.log.embedded.catalog import IndexEntry, PartitionState, Segment, Topic
from potok.log.embedded.metadata import Transaction
from potok.log.embedded.segments.encode import EncodedFrame
from potok.log.embedded.segments.frame import Frame
from potok.log.embedded.segments.segment import SegmentFile, link_segment
from potok.log.embedded.segments.staged import StagedFrames, Unstaged
from potok.log.errors import TopicNotFound

INDEX_INTERVAL = 64 << 10
ADOPTED_PART = 8
"""A staged file of at least this fraction of a segment becomes a segment itself; smaller ones would make too many."""

_FLUSH_BYTES = 8 << 20


class PartitionWriter:
    """Used for one commit, under the partition lock."""

    def __init__(self, topic: Topic, partition: int, state: PartitionState, directory: Path, ingested_ms: int) -> None:
        self.topic = topic
        self.partition = partition
        self.directory = directory
        self.end_offset = state.end_offset
        self.sealed: list[Segment] = []
        self._found = state
        self._ingested = ingested_ms
        self._index: list[IndexEntry] = []
        self._base = state.segment_base
        self._position = state.position
        self._indexed = state.indexed_position
        self._max_timestamp = state.max_timestamp
        self._buffers: list[bytes | memoryview | pa.Buffer] = []
        self._buffered = 0
        self._file: SegmentFile | None = None

    def extend(self, output: StagedFrames | Unstaged) -> None:
        if not isinstance(output, StagedFrames) or not self._adopt(output):
            for encoded in output.encoded():
                self.add(encoded)
            self.flush()

    def add(self, encoded: EncodedFrame) -> None:
        frame, body = encoded
        if self._position >= self.topic.config.segment_bytes:
            self._roll()
        self._buffers += (frame.header(self.end_offset, self._ingested), body)
        self._buffered += frame.size
        self._advance(frame)
        if self._buffered >= _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._buffers:
            if self._file is None:
                self._file = SegmentFile(self.directory, self._base, self._position - self._buffered)
            self._file.write(self._buffers)
            self._buffers = []
            self._buffered = 0

    def sync(self) -> None:
        if self._file is not None:
            self._file.sync()

    def discard(self) -> None:
        """Free the space of what is not committed; the next append would do it anyway."""
        if self._file is not None and not self.sealed:
            self._file.truncate(self._found.position)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def record(self, txn: Transaction) -> None:
        """Make the written frames visible."""
        topic = catalog.find_topic(txn, self.topic.name)
        if topic is None or topic.id != self.topic.id:
            raise TopicNotFound(self.topic.name)
        current = catalog.get_state(txn, topic, self.partition)
        if (current.end_offset, current.position) != (self._found.end_offset, self._found.position):
            raise LogError(
                f'the end of "{topic.name}" partition {self.partition} moved while it was locked',
                hint="the directory is on a file system without working locks; use a local disk",
            )
        for segment in self.sealed:
            catalog.put_segment(txn, topic, self.partition, segment)
        for entry in self._index:
            catalog.put_index(txn, topic, self.partition, entry)
        sealed_bytes = current.sealed_bytes + sum(segment.size for segment in self.sealed)
        state = PartitionState(
            current.start_offset,
            self.end_offset,
            self._base,
            self._position,
            self._indexed,
            self._max_timestamp,
            self._ingested,
            sealed_bytes,
        )
        catalog.put_state(txn, topic, self.partition, state)

    def _advance(self, frame: Frame) -> None:
        if self._position == 0 or self._position - self._indexed >= INDEX_INTERVAL:
            self._index.append(IndexEntry(self.end_offset, self._base, self._position, self._max_timestamp))
            self._indexed = self._position
        self._position += frame.size
        self.end_offset += frame.count
        self._max_timestamp = max(self._max_timestamp, frame.max_timestamp)

    def _adopt(self, output: StagedFrames) -> bool:
        """Make a large staged file the active segment instead of copying it; return False if that is impossible."""
        limit = self.topic.config.segment_bytes
        if output.path is None or not limit // ADOPTED_PART <= output.size <= 2 * limit:
            return False
        if not link_segment(self.directory, self.end_offset, Path(output.path)):
            return False
        if self._position:
            self._roll()
        self._file = SegmentFile(self.directory, self._base, output.size, linked=True)
        for frame in output.frames:
            self._file.write_at(self._position, frame.header(self.end_offset, self._ingested))
            self._advance(frame)
        return True

    def _roll(self) -> None:
        """Seal the active segment and start the next one."""
        self.flush()
        self.sync()
        self.close()
        ingested = self._ingested if self.end_offset > self._found.end_offset else self._found.last_ingested
        self.sealed.append(Segment(self._base, self.end_offset, self._position, self._max_timestamp, ingested))
        self._base = self.end_offset
        self._position = 0
        self._indexed = -1
        self._max_timestamp = catalog.NEVER


Sync = Callable[[], None]

_THREADS = 8

_pool: ThreadPoolExecutor | None = None


def sync_all(syncs: Sequence[Sync]) -> None:
    """Run all syncs and return when all have ended, even if one fails: a file must not be closed during its sync.

    They run in parallel, so that the file system merges its own writes for them."""
    if not syncs:
        return
    started: list[Future[None]] = []
    left = [syncs[0]]
    try:
        for number, sync in enumerate(syncs[1:], 1):
            try:
                started.append(_running().submit(sync))
            except RuntimeError:
                # At interpreter exit no thread can be started any more.
                left += syncs[number:]
                break
        for sync in left:
            sync()
    finally:
        wait(started)
    for future in started:
        future.result()


def _running() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(_THREADS, "potok-sync")
    return _pool


def _after_fork_in_child() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_after_fork_in_child)

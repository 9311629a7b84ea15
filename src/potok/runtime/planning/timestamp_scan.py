"""Timestamps of unread records whose event time comes from a field or a function: the log's index does not have them,
so each record is read ahead once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from potok.events.personal.key_store import known_key_store
from potok.log.broker import Broker
from potok.operators.core.chunk import Chunk, Ints
from potok.operators.core.dead_letters import DeadLetters, InputPartition
from potok.operators.core.operator import Task
from potok.operators.core.read_topic import SourceReader
from potok.operators.windows.expiry import NEVER
from potok.runtime.batches.original import originals
from potok.topology.execution_plan import Plan
from potok.topology.nodes import StreamSource, TableSource

AT_ONCE = 10_000


@dataclass(slots=True)
class TimestampScan:
    """The stream times of one partition from `start` on, read as far as requested."""

    broker: Broker
    plan: Plan
    node: StreamSource | TableSource
    partition: int
    start: int
    end: int
    """The next offset to read."""
    stream_time_ms: int = NEVER
    _offsets: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _times: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def first_ms(self, start: int, end: int) -> int:
        """Return the stream time at the first offset that advances it, or the previous one if none does."""
        before = self.stream_time_ms
        self._skip(start)
        while self.end < end and not len(self._times):
            self._read(min(self.end + AT_ONCE, end))
        return int(self._times[0]) if len(self._times) else before

    def first_at(self, time_ms: int, start: int, end: int) -> int:
        """Return the first offset from `start` on at which the stream time reaches `time_ms`, or `end`."""
        self._skip(start)
        while self.end < end and not (len(self._times) and self._times[-1] >= time_ms):
            self._read(min(self.end + AT_ONCE, end))
        reached = np.searchsorted(self._times, time_ms)
        return min(int(self._offsets[reached]), end) if reached < len(self._times) else end

    def _skip(self, start: int) -> None:
        """Drop offsets that have been processed."""
        unread = np.searchsorted(self._offsets, start)
        self._offsets, self._times, self.start = self._offsets[unread:], self._times[unread:], start

    def _read(self, end: int) -> None:
        """Read up to `end`. Records without a readable time do not advance the stream time."""
        input_partition = InputPartition(self.node.topic, self.partition)
        task = Task(DeadLetters([input_partition], partial(originals, self.broker), 0))
        columns = self.plan.columns[self.node.topic]
        keys = known_key_store(self.plan.personal_keys)
        reader = SourceReader(self.node, task, self.plan.inferred[self.node], columns, self.broker, keys=keys)
        seen: list[Chunk] = []
        reader.downstream.append(_Collect(seen))
        for batch in self.broker.read(self.node.topic, self.partition, self.end, end):
            reader.take(batch, 0, self.stream_time_ms)
        self._offsets = np.concatenate([self._offsets, *(chunk.offset for chunk in seen)])
        self._times = np.concatenate([self._times, *(chunk.stream_time for chunk in seen)])
        self.stream_time_ms = reader.stream_times.get(0, self.stream_time_ms)
        self.end = end


@dataclass(slots=True)
class _Collect:
    chunks: list[Chunk]

    def push(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)

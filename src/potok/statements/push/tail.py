"""Tail topics with one thread for all push queries: appended records are read once and handed to each subscription."""

from __future__ import annotations

import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import PotokError, QueryError
from potok.log.broker import Broker
from potok.statements.database import Database

log = logging.getLogger(__name__)

LOOK_S = 0.01
MOST_RECORDS = 100_000
MOST_BYTES = 64 << 20
"""How many bytes may wait for one reader before it is dropped."""

MOST_OF_ALL = 512 << 20
"""How many bytes may wait for all readers together; beyond it, the slowest is dropped. Records that wait for several
readers count once."""

BLOCK = 20_000
"""The batch size for a subscription that starts in the past."""

TAKEN_BYTES = 256 << 10
"""How much a reader takes at a time; rows are several times larger."""


class SlowReader(QueryError):
    """A client that does not read its rows fast enough."""

    def __init__(self, records: int) -> None:
        super().__init__(
            f"the client was too slow: {records} records were waiting for it",
            hint="read faster, ask for less (WHERE, LIMIT), or write the result to a stream: CREATE STREAM ... AS",
        )


class TooManyWait(QueryError):
    """Slow clients use all the memory for waiting records."""

    def __init__(self) -> None:
        super().__init__("too many records are waiting for slow clients", hint="try again later")


class Memory:
    """Counts the bytes held for all readers of a tail; thread-safe."""

    def __init__(self) -> None:
        self.used = 0
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        with self._lock:
            self.used += size

    @property
    def is_full(self) -> bool:
        return self.used > MOST_OF_ALL


class Lease:
    """Counts the bytes of a batch while any part of it is referenced: parts share its memory."""

    __slots__ = ("_memory", "_size")

    def __init__(self, memory: Memory, size: int) -> None:
        self._memory, self._size = memory, size
        memory.add(size)

    def __del__(self) -> None:
        self._memory.add(-self._size)


@dataclass(frozen=True, slots=True)
class Block:
    """Records of one partition, in order."""

    partition: int
    batch: pa.RecordBatch
    lease: Lease | None = None

    @classmethod
    def read(cls, partition: int, batch: pa.RecordBatch, memory: Memory) -> Block:
        return cls(partition, batch, Lease(memory, batch.nbytes))


@dataclass(slots=True)
class _Waiting:
    """Blocks that a reader has not taken yet."""

    blocks: deque[Block] = field(default_factory=deque)
    records: int = 0
    size: int = 0

    def take(self) -> list[Block]:
        """Return the first records, up to the read size."""
        taken, size = list[Block](), 0
        while self.blocks and (not taken or size + self.blocks[0].batch.nbytes <= TAKEN_BYTES):
            taken.append(self.blocks.popleft())
            size += taken[-1].batch.nbytes
            self.records -= taken[-1].batch.num_rows
        self.size = max(0, self.size - size) if self.blocks else 0
        return taken


def pieces(block: Block) -> Iterator[Block]:
    """Split a block into parts of the read size, with at least one record each."""
    batch, size, rows = block.batch, block.batch.nbytes, block.batch.num_rows
    if size <= TAKEN_BYTES or rows <= 1:
        if rows:
            yield block
        return
    half = rows // 2
    for part in (batch.slice(0, half), batch.slice(half)):
        yield from pieces(Block(block.partition, part, block.lease))


class Subscription:
    """The records of one topic from given offsets on. One thread takes, any thread may close it."""

    def __init__(self, tail: Tail, topic: str, positions: Mapping[int, int]) -> None:
        self._tail, self.topic = tail, topic
        self._positions = dict(positions)
        """The offsets up to which this subscription has read on its own, until it has caught up with the tail."""
        self._until: dict[int, int] = {}
        self._reading: Iterator[Block] = iter(())
        """Parts of the historical batch."""
        self._waiting = _Waiting()
        self._woken = threading.Condition()
        self._joined, self.closed = False, False
        self._error: PotokError | None = None
        self.wake: Callable[[], None] | None = None
        """Callback, from any thread, whenever `take` may have records."""

    @property
    def memory(self) -> Memory:
        return self._tail.memory

    def take(self, timeout_s: float | None = None) -> list[Block]:
        """Return the next blocks; none after the timeout or if it is closed. Raises if the subscription was dropped."""
        found = self._behind()
        if found:
            return found
        with self._woken:
            self._woken.wait_for(lambda: self._waiting.blocks or self.closed or self._error, timeout_s)
            if self._waiting.blocks:
                return self._waiting.take()
            if self._error is not None:
                raise self._error
            return []

    def _behind(self) -> list[Block]:
        """Read records before the offsets at which the tail takes over."""
        while not self.closed:
            block = next(self._reading, None)
            if block is not None:
                return [block]
            for partition, end in self._until.items():
                start = self._positions.get(partition, 0)
                if start < end:
                    self._read(partition, start, min(end, start + BLOCK))
                    break
            else:
                if self._joined:
                    self._until = {}
                    return []
                self._until = self._tail.join(self, self._positions)
        return []

    def _read(self, partition: int, start: int, stop: int) -> None:
        """Read one batch, and close everything, so that a slow client holds nothing open."""
        for batch in self._tail.broker.read(self.topic, partition, start, stop):
            if batch.num_rows:
                if self._tail.memory.is_full:
                    raise TooManyWait
                self._reading = pieces(Block.read(partition, batch, self._tail.memory))
                self._positions[partition] = int(batch.column("offset")[-1].as_py()) + 1
                return
        self._positions[partition] = stop

    def offer(self, block: Block) -> bool:
        """Queue a block for the reader; return False if too much is waiting."""
        block = self._unread(block)
        if not block.batch.num_rows:
            return True
        with self._woken:
            waiting, size = self._waiting, block.batch.nbytes
            if waiting.blocks and (waiting.records > MOST_RECORDS or waiting.size + size > MOST_BYTES):
                self._error = SlowReader(waiting.records)
                self._ring()
                return False
            waiting.blocks.extend(pieces(block))
            waiting.records += block.batch.num_rows
            waiting.size += size
            self._ring()
            return True

    def _unread(self, block: Block) -> Block:
        """Drop the records before the offset of the reader: the tail may be behind it."""
        start, offsets = self._positions.get(block.partition, 0), block.batch.column("offset")
        if offsets[0].as_py() >= start:
            return block
        unread = block.batch.filter(pc.greater_equal(offsets, start))
        return Block.read(block.partition, unread, self._tail.memory)

    @property
    def waiting_bytes(self) -> int:
        return self._waiting.size

    def drop(self) -> None:
        """Drop the queue, and raise this error in the reader."""
        with self._woken:
            self._error = self._error or SlowReader(self._waiting.records)
            self._waiting = _Waiting()
            self._ring()

    def fail(self, error: PotokError) -> None:
        with self._woken:
            self._error = self._error or error
            self._ring()

    def has_joined(self) -> None:
        self._joined = True

    def close(self) -> None:
        with self._woken:
            self.closed = True
            self._waiting, self._reading = _Waiting(), iter(())
            self._ring()
        self._tail.leave(self)

    def remind(self) -> None:
        """Call the callback if there is more to take."""
        with self._woken:
            if self.wake is not None and (not self._joined or self._until or self._waiting.blocks):
                self.wake()

    def _ring(self) -> None:
        self._woken.notify_all()
        if self.wake is not None:
            self.wake()


class Tail:
    """Hands the records appended to topics to its subscriptions."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.memory = broker, Memory()
        self._lock = threading.Lock()
        self._readers: dict[str, list[Subscription]] = {}
        self._positions: dict[str, dict[int, int]] = {}
        self._thread: threading.Thread | None = None

    def subscribe(self, topic: str, positions: Mapping[int, int]) -> Subscription:
        """Subscribe to a topic from these offsets on; partitions without one start at their beginning."""
        return Subscription(self, topic, positions)

    def join(self, reader: Subscription, positions: Mapping[int, int]) -> dict[int, int]:
        """Return the offsets up to which a new subscription reads on its own. If they are close, the tail takes over
        from there."""
        with self._lock:
            ends = self._positions.get(reader.topic) or dict(self.broker.end_offsets(reader.topic))
            far = sum(end - positions.get(partition, 0) for partition, end in ends.items())
            if far > BLOCK:
                return dict(ends)
            self._positions.setdefault(reader.topic, ends)
            self._readers.setdefault(reader.topic, []).append(reader)
            reader.has_joined()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="potok-tail", daemon=True)
                self._thread.start()
            return dict(ends)

    def leave(self, reader: Subscription) -> None:
        with self._lock:
            readers = self._readers.get(reader.topic, [])
            if reader in readers:
                readers.remove(reader)
            if not readers:
                self._readers.pop(reader.topic, None)
                self._positions.pop(reader.topic, None)

    def _watch(self) -> None:
        """Run until no subscription is left."""
        pause = threading.Event()
        while True:
            with self._lock:
                topics = list(self._readers)
                if not topics:
                    self._thread = None
                    return
            try:
                self._look(topics)
            except PotokError as error:
                self._look_one_by_one(topics, error)
            pause.wait(LOOK_S)

    def _look_one_by_one(self, topics: Iterable[str], error: PotokError) -> None:
        """Read topic by topic, so that an error of a topic affects only its own subscriptions."""
        for topic in topics:
            try:
                self._look([topic])
            except PotokError as own:
                log.warning("topic %s cannot be read: %s", topic, error)
                for reader in self._readers_of(topic):
                    reader.fail(own)
                    self.leave(reader)

    def _look(self, topics: list[str]) -> None:
        for topic, ends in self.broker.end_offsets_of(topics).items():
            known = self._positions.get(topic)
            for partition, end in ends.items() if known is not None else ():
                assert known is not None
                start = known.get(partition, 0)
                if end > start:
                    self._hand_over(topic, partition, start, end)

    def _hand_over(self, topic: str, partition: int, start: int, end: int) -> None:
        """Read batch by batch, so that a large append is never in memory as a whole."""
        for batch in self.broker.read(topic, partition, start, end):
            if batch.num_rows:
                behind = int(batch.column("offset")[-1].as_py()) + 1
                if not self._hand_over_to(topic, partition, start, behind, batch):
                    return
                start = behind
        if start < end:
            self._hand_over_to(topic, partition, start, end, None)

    def _hand_over_to(self, topic: str, partition: int, start: int, end: int, batch: pa.RecordBatch | None) -> bool:
        """Return whether the subscriptions still match the offsets."""
        with self._lock:
            if topic not in self._positions or self._positions[topic].get(partition, 0) != start:
                # All subscriptions ended and new ones started at other offsets.
                return False
            self._positions[topic][partition] = end
            readers = list(self._readers.get(topic, ()))
        block = None if batch is None else Block.read(partition, batch, self.memory)
        for reader in readers:
            if block is not None and not reader.offer(block):
                self.leave(reader)
        del block
        while self.memory.is_full and (slowest := self._slowest()) is not None:
            slowest.drop()
            self.leave(slowest)
        return True

    def _slowest(self) -> Subscription | None:
        """Return the subscription with the most waiting bytes; None if nothing waits."""
        with self._lock:
            readers = [reader for of_topic in self._readers.values() for reader in of_topic]
        found = max(readers, key=lambda reader: reader.waiting_bytes, default=None)
        return found if found is not None and found.waiting_bytes else None

    def _readers_of(self, topic: str) -> list[Subscription]:
        with self._lock:
            return list(self._readers.get(topic, ()))


_tails: weakref.WeakKeyDictionary[Database, Tail] = weakref.WeakKeyDictionary()
_opening = threading.Lock()


def tail_of(database: Database) -> Tail:
    """Return the tail of a database."""
    with _opening:
        found = _tails.get(database)
        if found is None:
            found = _tails[database] = Tail(database.broker)
        return found

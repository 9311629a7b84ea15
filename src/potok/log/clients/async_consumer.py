"""Receiving records in an asyncio program."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import pyarrow as pa

from potok.duration import Duration, to_seconds
from potok.errors import LogError
from potok.log.broker import Broker
from potok.log.clients.consumed_record import ConsumedRecord, records_of
from potok.log.clients.consumer import Consumer
from potok.log.consumer_groups import DEFAULT_LEASE_MS, DEFAULT_MAX_PAUSE_MS, PartitionId
from potok.log.log_start import OnLost
from potok.log.start import Start

T = TypeVar("T")
Callback = Callable[[list[PartitionId]], Awaitable[object] | object]

THREADS = 8
"""Shared by all producers and consumers of the process: none of them occupies a thread while it waits."""

_SHORTEST_WAIT, _LONGEST_WAIT = 0.001, 0.02

_in_callback: ContextVar[bool] = ContextVar("potok_in_callback", default=False)


@cache
def threads() -> ThreadPoolExecutor:
    """Threads for calls that may block."""
    return ThreadPoolExecutor(THREADS, "potok-async")


class AsyncConsumer:
    """A `Consumer` for asyncio: the same groups, positions and guarantees.

    >>> async with AsyncConsumer("file:./data", "orders", group="billing") as consumer:
    ...     async for record in consumer:
    ...         print(record.json())
    ...         await consumer.commit()

    The log is opened, and the group joined, by `async with` or by the first call. A consumer that waits for records
    occupies no thread. A call may be cancelled at any time: a record counts as returned once the call has returned it.

    The arguments are those of `Consumer`. `on_assign` and `on_revoke` may be coroutine functions, which may call the
    consumer; plain functions run in a thread and must not.
    """

    def __init__(
        self,
        broker: Broker | str | Path,
        topics: str | Sequence[str],
        *,
        group: str | None = None,
        start: Start = "earliest",
        until_end: bool = False,
        batch_records: int = 10_000,
        on_lost: OnLost = "stop",
        on_assign: Callback | None = None,
        on_revoke: Callback | None = None,
        lease: Duration = DEFAULT_LEASE_MS / 1000,
        max_pause: Duration = DEFAULT_MAX_PAUSE_MS / 1000,
    ) -> None:
        self._make = partial(
            Consumer,
            broker,
            topics,
            group=group,
            start=start,
            until_end=until_end,
            batch_records=batch_records,
            on_lost=on_lost,
            on_assign=self._callback(on_assign),
            on_revoke=self._callback(on_revoke),
            lease=lease,
            max_pause=max_pause,
        )
        self._until_end, self._batch_records = until_end, batch_records
        self._consumer: Consumer | None = None
        self._closed = False
        self._turn = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pieces: Iterator[tuple[pa.RecordBatch, PartitionId]] | None = None
        self._ready: deque[ConsumedRecord] = deque()
        self._topic_partition: PartitionId = ("", 0)
        self._expected = 0

    def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        """Yield every record as it arrives; forever, unless `until_end`."""
        return self._records()

    async def _records(self) -> AsyncIterator[ConsumedRecord]:
        while (record := await self._next(None)) is not None:
            yield record

    async def poll(self, timeout: Duration = 0, max_records: int = 10_000) -> list[ConsumedRecord]:
        """Return available records, at most `max_records`; wait up to `timeout` for the first."""
        first = await self._next(time.monotonic() + to_seconds(timeout))
        found = [] if first is None else [first]
        # Nothing is awaited from here on, so a cancelled call has taken nothing.
        while found and len(found) < max_records and (record := self._hand_out()) is not None:
            found.append(record)
        return found

    async def at_end(self) -> bool:
        """With `until_end`: whether all records that existed at the start were returned; see `Consumer.at_end`."""
        return await self._call(Consumer.at_end)

    async def commit(self) -> None:
        """Commit all records returned so far for the group; see `Consumer.commit`."""
        await self._call(Consumer.commit)

    async def seek(self, topic: str, partition: int, offset: int) -> None:
        """Continue at `offset` of one partition that this consumer reads."""
        await self._call(lambda consumer: consumer.seek(topic, partition, offset))

    async def positions(self) -> dict[PartitionId, int]:
        """The next offset of each partition of this consumer."""
        return await self._call(Consumer.positions)

    async def assignment(self) -> list[PartitionId]:
        """The partitions of this consumer: all of its topics, or those assigned by its group."""
        return await self._call(Consumer.assignment)

    async def close(self) -> None:
        """Leave the group; see `Consumer.close`."""
        await self._end(Consumer.close)

    async def __aenter__(self) -> Self:
        await self._call(lambda _: None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After an error, on_revoke is not called: it would commit the record that caused it.
        await self._end(Consumer.close if error is None else Consumer._leave)

    async def _end(self, work: Callable[[Consumer], None]) -> None:
        if self._consumer is not None and not self._closed:
            await self._call(work)
        self._closed = True
        self._ready.clear()

    async def _next(self, deadline: float | None) -> ConsumedRecord | None:
        """Return the next record; None at the deadline, or at the end."""
        pause = _SHORTEST_WAIT
        while True:
            if self._ready and self._is_stale():
                await self._call(Consumer._refresh)
            record = self._hand_out()
            if record is not None:
                return record
            if await self._call(self._read_piece):
                pause = _SHORTEST_WAIT
                continue
            if self._until_end and await self._call(Consumer.at_end):
                return None
            left = pause if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return None
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_WAIT)

    @property
    def _opened(self) -> Consumer:
        assert self._consumer is not None
        return self._consumer

    def _is_stale(self) -> bool:
        """Whether the group has changes to report."""
        membership = self._opened._membership
        return membership is not None and (membership.changed() or bool(self._opened._at.initial))

    def _hand_out(self) -> ConsumedRecord | None:
        """Return a record that was read, unless the caller has called `seek` or the partition was revoked."""
        if not self._ready:
            return None
        positions = self._opened._at.next
        if positions.get(self._topic_partition) != self._expected:
            self._ready.clear()
            return None
        record = self._ready.popleft()
        positions[self._topic_partition] = self._expected = record.offset + 1
        return record

    def _read_piece(self, consumer: Consumer) -> bool:
        """Read a chunk of the next partition that has records; return whether there were any."""
        for _ in range(2):
            if self._ready:
                return True  # another task has read a record meanwhile
            began = self._pieces is None
            self._pieces = self._pieces or consumer._available(self._batch_records)
            found = next(self._pieces, None)
            if found is not None:
                batch, self._topic_partition = found
                self._expected = consumer._at.next[self._topic_partition]
                self._ready.extend(records_of(batch, self._topic_partition))
                return True
            self._pieces = None
            if began:
                return False  # no partition has records
        return False

    async def _call(self, work: Callable[[Consumer], T]) -> T:
        """Run a call in a thread, one at a time. It is completed even if its caller was cancelled."""
        self._loop = asyncio.get_running_loop()
        if _in_callback.get():
            return await asyncio.to_thread(work, self._opened)
        running = self._loop.create_task(self._in_turn(work))
        running.add_done_callback(_looked_at)
        return await asyncio.shield(running)

    async def _in_turn(self, work: Callable[[Consumer], T]) -> T:
        async with self._turn:
            if self._closed:
                raise LogError("the consumer is closed", hint="read inside the async with block")
            return await asyncio.get_running_loop().run_in_executor(threads(), self._work, work)

    def _work(self, work: Callable[[Consumer], T]) -> T:
        if self._consumer is None:
            self._consumer = self._make()
        return work(self._consumer)

    def _callback(self, given: Callback | None) -> Callable[[list[PartitionId]], object] | None:
        if given is None or not inspect.iscoroutinefunction(given):
            return given

        async def called(topic_partitions: list[PartitionId]) -> object:
            _in_callback.set(True)
            return await given(topic_partitions)

        def from_thread(topic_partitions: list[PartitionId]) -> object:
            assert self._loop is not None
            return asyncio.run_coroutine_threadsafe(called(topic_partitions), self._loop).result()

        return from_thread


def _looked_at(task: asyncio.Task[T]) -> None:
    """The next call raises the error of a cancelled one again, so asyncio must not report it."""
    if not task.cancelled():
        task.exception()

"""Hand the results of commands to the requests that wait for them, with one subscription per topic."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from potok.errors import PotokError
from potok.patterns.aggregates.client import Found, results_in
from potok.statements.database import Database
from potok.statements.push.tail import Subscription, tail_of

log = logging.getLogger(__name__)

LINGER_S = 5.0
"""How long a topic is followed after the last request that waited for a result in it."""

Wanted = tuple[bytes, str]
"""The id of an aggregate, and of a command."""


@dataclass(slots=True)
class _Topic:
    """The results topic of one aggregate, while requests wait for results in it. Used on the event loop."""

    name: str
    subscription: Subscription
    waiting: dict[Wanted, list[asyncio.Future[Found | None]]] = field(default_factory=dict)
    is_reading: bool = False
    is_woken: bool = False

    def wanted(self) -> set[bytes]:
        return {key for key, _ in list(self.waiting)}

    def settle(self, key: bytes, found: Found) -> None:
        for future in self.waiting.get((key, found.result.command_id), ()):
            if not future.done():
                future.set_result(found)

    def give_up(self) -> None:
        for futures in self.waiting.values():
            for future in futures:
                if not future.done():
                    future.set_result(None)


class CommandResults:
    """The results that requests of one server wait for. Its methods are called on the event loop."""

    def __init__(self, database: Database, pool: ThreadPoolExecutor) -> None:
        self._database, self._pool = database, pool
        self._topics: dict[str, _Topic] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._reading: set[asyncio.Future[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def expected(self, topic: str, key: bytes, command_id: str) -> AsyncIterator[asyncio.Future[Found | None]]:
        """Follow the results from now on; the future has that of a command, or None if results are no longer followed.

        Send the command inside the block: a result that was there before is not found.
        """
        followed = await self._followed(topic)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Found | None] = loop.create_future()
        wanted = key, command_id
        followed.waiting.setdefault(wanted, []).append(future)
        if self._closed or self._topics.get(topic) is not followed:
            future.set_result(None)
        try:
            yield future
        finally:
            futures = followed.waiting[wanted]
            futures.remove(future)
            if not futures:
                del followed.waiting[wanted]
            if not followed.waiting:
                loop.call_later(LINGER_S, self._end_if_idle, followed)

    def close(self) -> None:
        """Stop following; requests that wait go without a result. May be called from any thread."""
        self._closed = True
        for followed in list(self._topics.values()):
            followed.subscription.close()

    async def _followed(self, topic: str) -> _Topic:
        # Two requests at once must not follow a topic twice.
        async with self._opening.setdefault(topic, asyncio.Lock()):
            found = self._topics.get(topic)
            if found is not None:
                return found
            loop = asyncio.get_running_loop()
            subscription = await loop.run_in_executor(self._pool, self._subscribe, topic)
            found = self._topics[topic] = _Topic(topic, subscription)
            subscription.wake = lambda: self._wake(loop, found)
            self._read(found)
            return found

    def _subscribe(self, topic: str) -> Subscription:
        return tail_of(self._database).subscribe(topic, self._database.broker.end_offsets(topic))

    def _wake(self, loop: asyncio.AbstractEventLoop, followed: _Topic) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._read, followed)

    def _read(self, followed: _Topic) -> None:
        """Read what has arrived, in a thread; what arrives meanwhile is read afterwards."""
        followed.is_woken = True
        if not followed.is_reading:
            followed.is_reading = True
            task = asyncio.ensure_future(self._read_all(followed))
            # The loop holds only a weak reference to a task.
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)

    async def _read_all(self, followed: _Topic) -> None:
        loop = asyncio.get_running_loop()
        try:
            while followed.is_woken and not followed.subscription.closed:
                followed.is_woken = False
                while found := await loop.run_in_executor(self._pool, self._taken, followed):
                    for key, one in found[1]:
                        followed.settle(key, one)
        except (PotokError, RuntimeError) as error:
            # Too slow, an unreadable topic, or the end of the server. The commands are decided nevertheless.
            log.warning("results of %s are not followed: %s", followed.name, error)
            followed.subscription.close()
        finally:
            followed.is_reading = False
        if followed.subscription.closed:
            if self._topics.get(followed.name) is followed:
                del self._topics[followed.name]
            followed.give_up()

    def _taken(self, followed: _Topic) -> tuple[int, list[tuple[bytes, Found]]] | None:
        """Return the next results that somebody waits for; None if there are no records."""
        blocks = followed.subscription.take(0)
        if not blocks:
            return None
        wanted = followed.wanted()
        return len(blocks), [
            item for block in blocks for item in results_in(followed.name, block.partition, block.batch, wanted)
        ]

    def _end_if_idle(self, followed: _Topic) -> None:
        if not followed.waiting and self._topics.get(followed.name) is followed:
            del self._topics[followed.name]
            followed.subscription.close()

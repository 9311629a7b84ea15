"""Open push queries: found by their id, counted, and followed without a thread for each."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from potok.serving.errors import TooManyPushes
from potok.sql.budget import until
from potok.statements.results import Push, Row

T = TypeVar("T")

QUIET_S = 5.0
"""After so long without a row, whoever waits is told that there was none."""

LOOK_S = 0.02
"""How often one is looked at that does not say by itself when it has something."""

THREADS = 4

TAKE_S = 10.0
"""For so long one may compute what it takes at a time; one that needs longer is ended."""


class Follower(Generic[T]):
    """Takes what comes whenever there is something to take; `wake` may be called from any thread."""

    def __init__(self, pool: ThreadPoolExecutor, take: Callable[[], T | None]) -> None:
        self._pool = pool
        # Whoever computes for longer keeps the others from their rows: a few threads are there for all.
        self._take = lambda: until(time.monotonic() + TAKE_S, take)
        self._loop, self._something = asyncio.get_running_loop(), asyncio.Event()
        self._something.set()

    def wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._something.set)

    async def next(self, timeout_s: float) -> T | None:
        """What there is; whatever `take` gives for nothing if nothing came in time."""
        if not self._something.is_set():
            try:
                async with asyncio.timeout(timeout_s):
                    await self._something.wait()
            except TimeoutError:
                pass
        self._something.clear()
        return await self._loop.run_in_executor(self._pool, self._take)


class OpenPush:
    """A push query of one client."""

    def __init__(self, push: Push, pool: ThreadPoolExecutor) -> None:
        self.push, self.columns = push, push.columns
        # An id that somebody else could guess would let them close it.
        self.query_id = f"{push.query_id or 'transient'}_{secrets.token_hex(8)}"
        self.was_closed = False
        self._follower: Follower[Sequence[Row]] = Follower(pool, lambda: push.next(0))
        self._look_s = QUIET_S if push.notify(self._follower.wake) else LOOK_S

    async def batches(self) -> AsyncIterator[Sequence[Row]]:
        """Its rows, as they come; an empty batch now and then while nothing does. Raises why it was dropped."""
        while (rows := await self._follower.next(self._look_s)) is not None:
            if rows:
                self._follower.wake()  # there may be more: only an empty batch says that there is not
            yield rows

    def close(self) -> None:
        self.was_closed = True
        self.push.close()
        self._follower.wake()


class Pushes:
    """All that are open at a server."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, OpenPush] = {}
        self._taken = 0
        self.pool = ThreadPoolExecutor(THREADS, "potok-push")
        # To close one may mean to wait for the end of a batch, and the others go on meanwhile.
        self._closing = ThreadPoolExecutor(1, "potok-push-close")

    def reserve(self) -> None:
        """Take one of the places, before anything is started for it; `release` gives it back."""
        if self._taken >= self._most:
            raise TooManyPushes(self._most)
        self._taken += 1

    def release(self) -> None:
        self._taken -= 1

    def add(self, push: Push) -> OpenPush:
        """For a push query that has its place."""
        opened = OpenPush(push, self.pool)
        self._open[opened.query_id] = opened
        return opened

    def end(self, opened: OpenPush) -> None:
        """Close one and give its place back; harmless if that was done."""
        if self._open.pop(opened.query_id, None) is not None:
            self.release()
        self._close_later(opened)

    def close(self, query_id: str) -> bool:
        """End the one of this id, for all that its client still waits; False if there is none."""
        found = self._open.get(query_id)
        if found is not None:
            self._close_later(found)
        return found is not None

    def _close_later(self, opened: OpenPush) -> None:
        """To close one may mean to remove a query between two batches, so nobody waits for it."""
        try:
            self._closing.submit(opened.close)
        except RuntimeError:  # the server ends, and has no threads left for that
            opened.close()

    @property
    def ids(self) -> list[str]:
        return sorted(self._open)

    def close_all(self) -> None:
        for opened in list(self._open.values()):
            opened.close()

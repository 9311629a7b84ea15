"""Open push queries, by id and counted, without a thread for each."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from potok.server.access.held_bytes import Holding
from potok.server.errors import TooManyPushes
from potok.server.sending import PIECE
from potok.sql.budget import PER_OBJECT, Stop, allowance, until
from potok.statements.results import Push, Row

T = TypeVar("T")
Written = TypeVar("Written", bytes, list[str])

QUIET_S = 5.0
"""After so long without a row, whoever waits is told that there was none."""

LOOK_S = 0.02
"""How often one is looked at that does not say by itself when it has something."""

THREADS = 4

TAKE_S = 10.0
"""For so long one may compute what it takes at a time; one that needs longer is ended."""

MOST_BYTES = 128 << 20
"""Of the values that it may compute with meanwhile."""


class Follower(Generic[T]):
    """Takes what comes whenever there is something to take; `wake` may be called from any thread.

    What was taken counts as held for the client until the next is asked for, or until `close`.

    Args:
        take: What there is; nothing where nothing is, None when it is over.
        size_of: How many bytes of that are kept until they are sent.
    """

    def __init__(
        self,
        pool: ThreadPoolExecutor,
        take: Callable[[], T | None],
        size_of: Callable[[T], int],
        holding: Holding,
    ) -> None:
        self._pool, self._take, self._size_of, self._holding = pool, take, size_of, holding
        self._loop, self._something = asyncio.get_running_loop(), asyncio.Event()
        self._something.set()
        self._stop = Stop()

    def wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._something.set)

    async def next(self, timeout_s: float) -> T | None:
        """What there is; whatever `take` gives for nothing if nothing came in time. Raises `Busy` where it is more than
        there is room for."""
        self._holding.give_back()
        if not self._something.is_set():
            try:
                async with asyncio.timeout(timeout_s):
                    await self._something.wait()
            except TimeoutError:
                pass
        self._something.clear()
        found = await self._loop.run_in_executor(self._pool, self._taken)
        size = 0 if found is None else self._size_of(found)
        if size > PIECE and not self._stop.is_asked:
            self._holding.take(size)
        return found

    def _taken(self) -> T | None:
        # Whoever computes for longer keeps the others from their rows: a few threads are there for all.
        with allowance(most=MOST_BYTES):
            return until(time.monotonic() + TAKE_S, self._take, self._stop)

    def close(self) -> None:
        """Stop what computes, and let go of what was not sent; from the event loop."""
        self._stop.ask()
        self._holding.give_back()


Write = Callable[[Sequence[Row]], Written]
"""What rows become, in a thread, on their way to the client."""


class OpenPush(Generic[Written]):
    """Push query of one client."""

    def __init__(self, push: Push, write: Write[Written], pool: ThreadPoolExecutor, holding: Holding) -> None:
        self.push, self.columns = push, push.columns
        # A guessable id would let other clients close the query.
        self.query_id = f"{push.query_id or 'transient'}_{secrets.token_hex(8)}"
        self.was_closed = False
        self._write: Write[Written] = write
        self.follower: Follower[Written] = Follower(pool, self._take, size_of, holding)
        self._look_s = QUIET_S if push.notify(self.follower.wake) else LOOK_S

    def _take(self) -> Written | None:
        rows = self.push.next(0)
        return None if rows is None else self._write(rows)

    async def batches(self) -> AsyncIterator[Written]:
        """Its rows, as they come and as they are written; an empty batch now and then while nothing does. Raises why it
        was dropped."""
        while (written := await self.follower.next(self._look_s)) is not None:
            if written:
                self.follower.wake()  # there may be more: only an empty batch says that there is not
            yield written

    def close(self) -> None:
        self.was_closed = True
        self.push.close()
        self.follower.wake()


def size_of(written: Written) -> int:
    """Return the number of bytes held until they are sent."""
    return len(written) if isinstance(written, bytes) else sum(len(text) + PER_OBJECT for text in written)


class Pushes:
    """All open push queries of a server."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, OpenPush[Any]] = {}
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

    def add(self, push: Push, write: Write[Written], holding: Holding) -> OpenPush[Written]:
        """For a push query that has its place."""
        opened = OpenPush(push, write, self.pool, holding)
        self._open[opened.query_id] = opened
        return opened

    def end(self, opened: OpenPush[Any]) -> None:
        """Close one and give its place back; harmless if that was done."""
        opened.follower.close()
        if self._open.pop(opened.query_id, None) is not None:
            self.release()
        self._close_later(opened)

    def close(self, query_id: str) -> bool:
        """End the one of this id, for all that its client still waits; False if there is none."""
        found = self._open.get(query_id)
        if found is not None:
            self._close_later(found)
        return found is not None

    def _close_later(self, opened: OpenPush[Any]) -> None:
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

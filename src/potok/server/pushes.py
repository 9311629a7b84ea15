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
"""A wait without a row ends after this time with an empty result."""

LOOK_S = 0.02
"""Polling interval of a push query that does not report new rows."""

THREADS = 4

TAKE_S = 10.0
"""Time limit of one computation; a push query that exceeds it is closed."""

MOST_BYTES = 128 << 20
"""Size limit of the values of one computation."""


class Follower(Generic[T]):
    """Takes rows whenever there are some; `wake` may be called from any thread.

    Taken rows count as held for the client until the next ones are requested, or until `close`.

    Args:
        take: Returns the available rows, possibly none; None at the end.
        size_of: Returns the number of bytes held until they are sent.
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
        """Return the available rows, or the empty result of `take` after the timeout. Raises `Busy` if they exceed the
        limit of held bytes."""
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
        # All push queries share a few threads, so a long computation delays the others.
        with allowance(most=MOST_BYTES):
            return until(time.monotonic() + TAKE_S, self._take, self._stop)

    def close(self) -> None:
        """Stop the computation and release unsent rows; call on the event loop."""
        self._stop.ask()
        self._holding.give_back()


Write = Callable[[Sequence[Row]], Written]
"""Encodes rows in a thread."""


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
        """Yield encoded rows as they arrive, and an empty batch from time to time while there are none. Raises the
        reason if the query was dropped."""
        while (written := await self.follower.next(self._look_s)) is not None:
            if written:
                self.follower.wake()  # there may be more until a batch is empty
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
        # Closing one may wait for the end of a batch; the others continue meanwhile.
        self._closing = ThreadPoolExecutor(1, "potok-push-close")

    def reserve(self) -> None:
        """Reserve a slot before anything is started; `release` frees it."""
        if self._taken >= self._most:
            raise TooManyPushes(self._most)
        self._taken += 1

    def release(self) -> None:
        self._taken -= 1

    def add(self, push: Push, write: Write[Written], holding: Holding) -> OpenPush[Written]:
        """Register a push query whose slot is reserved."""
        opened = OpenPush(push, write, self.pool, holding)
        self._open[opened.query_id] = opened
        return opened

    def end(self, opened: OpenPush[Any]) -> None:
        """Close a push query and free its slot; idempotent."""
        opened.follower.close()
        if self._open.pop(opened.query_id, None) is not None:
            self.release()
        self._close_later(opened)

    def close(self, query_id: str) -> bool:
        """End the push query of this id, although its client still waits; return False if there is none."""
        found = self._open.get(query_id)
        if found is not None:
            self._close_later(found)
        return found is not None

    def _close_later(self, opened: OpenPush[Any]) -> None:
        """Close a push query without waiting: it may have to remove a query between two batches."""
        try:
            self._closing.submit(opened.close)
        except RuntimeError:  # the server is shutting down, and its threads have ended
            opened.close()

    @property
    def ids(self) -> list[str]:
        return sorted(self._open)

    def close_all(self) -> None:
        for opened in list(self._open.values()):
            opened.close()

"""Take snapshots of the feed, shared by all connected browsers."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import orjson

from potok.clock import now_ms
from potok.server.console.feed import Feed

HISTORY = 120
"""Points that a page gets when it opens, so that its charts are not empty."""

LAST_LOOK_S = 5.0

CURVES = ("rate_in", "rate_out", "lag", "batch_ms", "dead_letters", "state_bytes")


class Live:
    """Takes a snapshot every `interval` seconds and passes it to all listeners.

    A slow browser skips snapshots and gets the latest; it never delays the others.
    """

    def __init__(self, feed: Feed, interval: float = 0.4, history: int = HISTORY) -> None:
        self._feed = feed
        self._interval = interval
        self._history: deque[dict[str, Any]] = deque(maxlen=history)
        self._latest: dict[str, Any] = {}
        self._encoded = b""
        self._number = 0
        self._changed = asyncio.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take snapshots while the application is up."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while not self._closed:
            await self.look()
            await asyncio.sleep(self._interval)

    async def look(self) -> None:
        """Take one snapshot and wake the listeners."""
        snapshot = await asyncio.to_thread(self._snapshot)
        self._history.append({"at": snapshot["at"], **{curve: snapshot.get(curve) for curve in CURVES}})
        self._latest, self._encoded = snapshot, orjson.dumps(snapshot, default=str)
        self._number += 1
        await self._wake()

    def _snapshot(self) -> dict[str, Any]:
        try:
            return self._feed.snapshot()
        except Exception as error:  # noqa: BLE001 - a supervisor: the page says what is wrong and looks again
            return {**self._latest, "at": now_ms(), "state": "unreadable", "error": str(error)}

    def snapshot(self) -> dict[str, Any]:
        """Return the latest snapshot with the whole history."""
        return {**self._latest, "history": list(self._history)}

    async def events(self) -> AsyncIterator[bytes]:
        """Yield server-sent events: first a snapshot with the history, then one per interval."""
        self._loop = asyncio.get_running_loop()
        if not self._number:
            await self._next(0)
        seen = self._number
        yield b"retry: 1000\n" + _event(orjson.dumps(self.snapshot(), default=str))
        while True:
            await self._next(seen)
            if self._number == seen:
                return
            seen = self._number
            yield _event(self._encoded)

    async def _next(self, seen: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._closed or self._number > seen)

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """End all event streams with a last snapshot, from any thread: the server waits for open responses before it
        stops."""
        if self._loop is None or not self._loop.is_running():
            self._closed = True
            return
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(LAST_LOOK_S)

    async def _end(self) -> None:
        try:
            await self.look()
        finally:
            self._closed = True
            await self._wake()


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"

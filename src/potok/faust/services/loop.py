"""The event loop of an app: its pages, timers, tasks and services share it, so that they can share locks and queues of
asyncio; code that blocks it delays no request to other URLs.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from inspect import isawaitable, iscoroutinefunction
from types import TracebackType
from typing import Any, TypeVar

_logger = logging.getLogger("potok.faust")

T = TypeVar("T")

LEAVE_S = 10.0
"""How long the end of the loop waits for blocking code."""

THREADS = 32
"""How many functions that are not async may block concurrently."""


class AppLoop:
    """A loop in its own thread, which runs from the first `enter` to the last `leave`."""

    def __init__(self) -> None:
        self._users, self._lock = 0, threading.Lock()
        self._thread: threading.Thread | None = None
        self._running: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> AppLoop:
        with self._lock:
            self._users += 1
            if self._thread is None:
                ready = threading.Event()
                self._thread = threading.Thread(target=self._run, args=(ready,), name="potok-app", daemon=True)
                self._thread.start()
                ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._users -= 1
            if self._users or self._thread is None or self._running is None:
                return
            thread, self._thread = self._thread, None
            self._running.call_soon_threadsafe(self._ended.set)
            self._running = None
        thread.join(LEAVE_S)
        if thread.is_alive():
            _logger.warning("a page, a timer or a task blocks the event loop: it is abandoned")

    def _run(self, ready: threading.Event) -> None:
        asyncio.run(self._until_ended(ready))

    async def _until_ended(self, ready: threading.Event) -> None:
        self._running = loop = asyncio.get_running_loop()
        self._ended = ended = asyncio.Event()
        loop.set_default_executor(ThreadPoolExecutor(THREADS, "potok-page"))
        ready.set()
        await ended.wait()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the loop, which must be running."""
        assert self._running is not None
        return asyncio.run_coroutine_threadsafe(work, self._running)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and wait for it in the caller's; in the caller's if this loop is not
        running.
        """
        running = self._running
        if running is None or running is asyncio.get_running_loop():
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, running))


async def called(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return the result of a function; one that is not async gets a thread, because it may block."""
    if iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*args, **options)
    made = await asyncio.to_thread(function, *args, **options)
    return await made if isawaitable(made) else made

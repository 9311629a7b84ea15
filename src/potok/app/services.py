"""What an app does beside its agents, in the process of the worker: tasks, timers, and times by cron."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import isawaitable, signature
from types import TracebackType
from typing import Any
from zoneinfo import ZoneInfo

from potok.app.cron import Cron

_logger = logging.getLogger("potok.app")

Work = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Timed:
    """A function, and how long to wait before each call; one that waits for nothing is called once."""

    name: str
    work: Work
    wait_s: Callable[[datetime], float | None] | None = None


def every(work: Work, seconds: float) -> Timed:
    return Timed(_name(work), work, lambda _: seconds)


def by_cron(work: Work, text: str, zone: Any = None) -> Timed:
    cron = Cron.of(text)
    place = ZoneInfo(zone) if isinstance(zone, str) else zone or UTC

    def wait_s(now: datetime) -> float | None:
        due = cron.after(now.astimezone(place))
        return None if due is None else (due - now).total_seconds()

    return Timed(_name(work), work, wait_s)


def once(work: Work) -> Timed:
    return Timed(_name(work), work)


def _name(work: Work) -> str:
    return getattr(work, "__name__", type(work).__name__)


class Services:
    """Runs timed functions in an event loop of their own, in the background. What one raises is logged, and it is
    called again when it is due again."""

    def __init__(self, app: Any, timed: list[Timed]) -> None:
        self._app, self._timed = app, timed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="potok-services", daemon=True)

    def __enter__(self) -> Services:
        if self._timed:
            self._thread.start()
            self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop)
            self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._all())

    async def _all(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        tasks = [asyncio.ensure_future(self._repeat(timed)) for timed in self._timed]
        self._ready.set()
        await self._ended.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _stop(self) -> None:
        self._ended.set()

    async def _repeat(self, timed: Timed) -> None:
        while timed.wait_s is not None:
            wait_s = timed.wait_s(datetime.now(UTC))
            if wait_s is None:
                return
            await asyncio.sleep(wait_s)
            await self.call(timed)
        await self.call(timed)

    async def call(self, timed: Timed) -> None:
        """Call a function once, with the app if it takes an argument."""
        try:
            takes_app = bool(signature(timed.work).parameters)
            told: Awaitable[Any] | Any = timed.work(self._app) if takes_app else timed.work()
            if isawaitable(told):
                await told
        except Exception:
            _logger.exception("%s failed", timed.name)

"""Signals, services, tasks, timers and cron jobs of an app, in the process of the worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable, signature
from types import TracebackType
from typing import Any, TypeVar, overload

from potok.duration import to_seconds
from potok.faust.services.loop import LEAVE_S, AppLoop
from potok.faust.services.service import Service, wait_for_cron
from potok.faust.settings.options import TIMED, left_out

_logger = logging.getLogger("potok.faust")

Work = Callable[..., Any]
W = TypeVar("W", bound=Work)
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Timed:
    """A function, and how long to wait before each call; one without a wait is called once."""

    name: str
    work: Work
    wait_s: Callable[[], float | None] | None = None


def every(work: Work, seconds: float) -> Timed:
    return Timed(_name(work), work, lambda: seconds)


def by_cron(work: Work, text: str, zone: Any = None) -> Timed:
    return Timed(_name(work), work, wait_for_cron(text, zone))


def once(work: Work) -> Timed:
    return Timed(_name(work), work)


def _name(work: Work) -> str:
    return getattr(work, "__name__", type(work).__name__)


class WithServices:
    """The part of an app that defines services."""

    Service = Service
    timed: list[Timed]
    services: list[Callable[[], Any]]
    options: dict[str, Any]

    def service(self, cls: type[S]) -> type[S]:
        """Start and stop a service with the worker."""
        self.services.append(cls)
        return cls

    def timer(self, interval: Any, **options: Any) -> Callable[[W], W]:
        """Call a function at an interval in seconds, in the process of the worker."""
        left_out("a timer", options, TIMED)
        seconds = to_seconds(interval)
        return self._time(lambda work: every(work, seconds))

    def crontab(self, cron_format: str, *, timezone: Any = None, **options: Any) -> Callable[[W], W]:
        """Call a function at the times of a cron expression: `"0 9 * * mon"`; UTC unless a zone is given."""
        left_out("a cron expression", options, TIMED)
        return self._time(lambda work: by_cron(work, cron_format, timezone or self.options.get("timezone")))

    @overload
    def task(self, function: W, **options: Any) -> W: ...

    @overload
    def task(self, function: None = None, **options: Any) -> Callable[[W], W]: ...

    def task(self, function: Any = None, **options: Any) -> Any:
        """Call a function once, when the worker has started."""
        left_out("a task", options, TIMED)
        decorate: Callable[[Any], Any] = self._time(once)
        return decorate if function is None else decorate(function)

    def _time(self, timed: Callable[[Work], Timed]) -> Callable[[W], W]:
        def decorate(function: W) -> W:
            self.timed.append(timed(function))
            return function

        return decorate


class Services:
    """Runs timed functions and services in the event loop of the app, in the background. Exceptions are logged,
    and the function is called again when it is next due.
    """

    def __init__(self, app: Any, timed: list[Timed]) -> None:
        self._app, self._timed = app, timed
        self._services: list[Service] = [make() for make in getattr(app, "services", ())]
        self._loop: AppLoop = AppLoop() if app is None else app.own_loop

    def __enter__(self) -> Services:
        self._loop.__enter__()
        if self._app is not None:
            self._app.should_stop = False
        self._ended = asyncio.Event()
        self._work = self._loop.submit(self._all())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._loop.submit(self._stop()).result(LEAVE_S)
        except TimeoutError:
            # Blocking code occupies the loop and cannot be stopped.
            pass
        else:
            self._work.result()
        finally:
            self._loop.__exit__(kind, error, trace)

    async def _all(self) -> None:
        started = [service for service in self._services if await self._started(service)]
        if self._app is not None:
            await self._app.send_started()
        tasks = [asyncio.ensure_future(self._repeat(timed)) for timed in self._timed]
        await self._ended.wait()
        if self._app is not None:
            await self._app.send_stopping()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(service.stop() for service in reversed(started)), return_exceptions=True)

    async def _started(self, service: Service) -> bool:
        try:
            await service.start()
        except Exception:
            _logger.exception("service %s does not start", service.label)
            return False
        return True

    async def _stop(self) -> None:
        if self._app is not None:
            self._app.should_stop = True
        self._ended.set()

    async def _repeat(self, timed: Timed) -> None:
        while timed.wait_s is not None:
            wait_s = timed.wait_s()
            if wait_s is None:
                return
            await asyncio.sleep(wait_s)
            await self.call(timed)
        await self.call(timed)

    async def call(self, timed: Timed) -> None:
        """Call a function once, with the app if it takes an argument."""
        try:
            takes_app = bool(signature(timed.work).parameters)
            result: Awaitable[Any] | Any = timed.work(self._app) if takes_app else timed.work()
            if isawaitable(result):
                await result
        except Exception:
            _logger.exception("%s failed", timed.name)

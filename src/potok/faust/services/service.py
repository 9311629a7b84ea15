"""Services of an app: started and stopped with the worker, with their own background tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, ClassVar, TypeVar, cast
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from potok.duration import to_seconds
from potok.errors import Location, TopologyError
from potok.faust.services.worker_log import WorkerLog
from potok.faust.unsupported import REFUSED, without

_logger = logging.getLogger("potok.faust")

Method = Callable[..., Any]
M = TypeVar("M", bound=Method)


@without(REFUSED["Service"])
class Service:
    """A service that is started and stopped with the worker.

    >>> @app.service
    ... class Feed(Service):
    ...     async def on_start(self): self.socket = await connect()
    ...     @Service.task
    ...     async def read(self):
    ...         while not self.should_stop:
    ...             await orders.send(value=await self.socket.recv())
    """

    _background: ClassVar[dict[str, Callable[[Service], Awaitable[None]]]] = {}

    def __init__(self, **_: Any) -> None:
        """`loop=` and `beacon=` of Faust are accepted: a service runs in the loop that starts it."""
        self.started, self.restart_count = False, 0
        self.log = WorkerLog()
        self._stopping: asyncio.Event | None = None
        self._futures: set[asyncio.Future[Any]] = set()
        self._parts: list[Service] = []

    def __init_subclass__(cls, **_: Any) -> None:
        found = {name: value.start for name, value in vars(cls).items() if isinstance(value, _Background)}
        cls._background = {**cls._background, **found}

    @staticmethod
    def task(method: M) -> M:
        """Run a method in the background, from the start of the service on."""
        return cast(M, _Background(method, lambda service: method(service)))

    @staticmethod
    def timer(interval: Any, **_: Any) -> Callable[[M], M]:
        """Call a method periodically."""
        seconds = to_seconds(interval)
        return _periodic(lambda: seconds)

    @staticmethod
    def crontab(cron_format: str, timezone: Any = None) -> Callable[[M], M]:
        """Call a method at the times of a cron expression."""
        wait_s = wait_for_cron(cron_format, timezone)
        return _periodic(wait_s)

    async def on_first_start(self) -> None: ...

    async def on_start(self) -> None: ...

    async def on_started(self) -> None: ...

    async def on_stop(self) -> None: ...

    async def on_shutdown(self) -> None: ...

    async def on_restart(self) -> None: ...

    @property
    def label(self) -> str:
        return type(self).__name__

    @property
    def should_stop(self) -> bool:
        return self._stopping is None or self._stopping.is_set()

    async def start(self) -> None:
        self._stopping = asyncio.Event()
        if not self.started and not self.restart_count:
            await self.on_first_start()
        self.started = True
        await self.on_start()
        for begin in self._background.values():
            self.add_future(_supervised(self, begin))
        for part in self._parts:
            await part.maybe_start()
        await self.on_started()

    async def maybe_start(self) -> bool:
        if not self.should_stop:
            return False
        await self.start()
        return True

    async def stop(self) -> None:
        if self._stopping is None or self._stopping.is_set():
            return
        self._stopping.set()
        await self.on_stop()
        for part in reversed(self._parts):
            await part.stop()
        for future in list(self._futures):
            future.cancel()
        await asyncio.gather(*self._futures, return_exceptions=True)
        await self.on_shutdown()

    async def restart(self) -> None:
        await self.stop()
        self.restart_count += 1
        await self.on_restart()
        await self.start()

    async def sleep(self, seconds: Any) -> None:
        """Sleep for a time, or until the service stops."""
        assert self._stopping is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(to_seconds(seconds)):
                await self._stopping.wait()

    async def wait_until_stopped(self) -> None:
        assert self._stopping is not None
        await self._stopping.wait()

    def add_future(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """Run a coroutine in the background, until it is done or the service stops."""
        future = asyncio.ensure_future(work)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def add_dependency(self, service: Service) -> Service:
        """Start and stop another service with this one."""
        self._parts.append(service)
        return service

    async def add_runtime_dependency(self, service: Service) -> Service:
        self.add_dependency(service)
        if not self.should_stop:
            await service.maybe_start()
        return service

    async def __aenter__(self) -> Service:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


class _Background:
    """A method that runs in the background, and can be called like any other."""

    def __init__(self, method: Method, start: Callable[[Service], Awaitable[None]]) -> None:
        self._method, self.start = method, start

    def __get__(self, instance: Service | None, owner: type) -> Any:
        return self if instance is None else self._method.__get__(instance, owner)


def _periodic(wait_s: Callable[[], float | None]) -> Callable[[M], M]:
    def decorate(method: M) -> M:
        return cast(M, _Background(method, lambda service: _every(service, method, wait_s)))

    return decorate


async def _every(service: Service, method: Method, wait_s: Callable[[], float | None]) -> None:
    while (seconds := wait_s()) is not None:
        await service.sleep(seconds)
        if service.should_stop:
            return
        try:
            await method(service)
        except Exception:
            _logger.exception("%s.%s failed", service.label, method.__name__)


async def _supervised(service: Service, begin: Callable[[Service], Awaitable[None]]) -> None:
    try:
        await begin(service)
    except Exception:
        _logger.exception("a task of %s failed", service.label)


_FIELDS = 5
_DAYS = {2: "1-31", 4: "0-7"}
"""The fields of the day of the month and of the week, with all of their values."""


class NotCron(TopologyError):
    """A text that is not a cron expression."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f'"{text}" is not a cron expression',
            hint='write minute hour day month weekday: "*/5 * * * *", "0 9 * * mon"',
            at=Location.of_caller(),
        )


def next_time(text: str, after: datetime) -> datetime | None:
    """Return the first time later than an instant, in its zone; None if there is none."""
    parts = text.split()
    if len(parts) != _FIELDS:
        raise NotCron(text)
    # If both days are given, either matches. As in Faust, a step counts as given; cron would treat its star as
    # not given.
    parts = [part.replace("*/", f"{_DAYS[at]}/") if at in _DAYS else part for at, part in enumerate(parts)]
    try:
        return next(CronSim(" ".join(parts), after), None)
    except CronSimError as error:
        raise NotCron(text) from error


def wait_for_cron(text: str, zone: Any = None) -> Callable[[], float | None]:
    """Return the seconds until the next time; None if there is none. UTC unless a zone is given."""
    local_zone = ZoneInfo(zone) if isinstance(zone, str) else zone or UTC
    next_time(text, datetime.now(local_zone))

    def wait_s() -> float | None:
        now = datetime.now(UTC)
        due = next_time(text, now.astimezone(local_zone))
        return None if due is None else (due - now).total_seconds()

    return wait_s

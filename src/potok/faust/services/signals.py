"""Signals of an app: events of the worker that functions can subscribe to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from potok.faust.messaging.message import TP
from potok.faust.settings.options import say_unheard

if TYPE_CHECKING:
    from potok.log.broker import Broker

_logger = logging.getLogger("potok.faust")

Receiver = Callable[..., Any]


class Signal:
    """An event of the worker. Connected functions are called with the app, and with its details by name.

    >>> @app.on_before_shutdown.connect
    ... async def goodbye(app, **kwargs): ...
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._receivers: list[Receiver] = []

    def __repr__(self) -> str:
        return f"<Signal {self.name}: {len(self._receivers)} connected>"

    @property
    def connected(self) -> bool:
        return bool(self._receivers)

    def connect(self, function: Receiver | None = None, **_: Any) -> Any:
        """Call a function for this event. `weak=` and `sender=` of Faust are accepted: there is one app."""
        if function is None:
            return self.connect
        self._receivers.append(function)
        return function

    def disconnect(self, function: Receiver, **_: Any) -> None:
        if function in self._receivers:
            self._receivers.remove(function)

    async def send(self, app: Any, **arguments: Any) -> None:
        """Call all connected functions. Exceptions are logged, and the remaining functions are called."""
        for receiver in self._receivers:
            try:
                answer = receiver(app, **arguments)
                if isawaitable(answer):
                    await answer
            except Exception:
                _logger.exception("%s: %s failed", self.name, getattr(receiver, "__name__", receiver))

    def send_now(self, app: Any, **arguments: Any) -> None:
        """Like `send`, where nothing can be awaited: async functions are refused."""
        for receiver in self._receivers:
            answer = receiver(app, **arguments)
            if isawaitable(answer):
                if hasattr(answer, "close"):
                    answer.close()
                raise TypeError(f"{self.name} is sent synchronously: connect a function that is not async")


class WithSignals:
    """The part of an app that defines signals."""

    agents: dict[str, Any]

    if TYPE_CHECKING:

        @property
        def log(self) -> Callable[[], Broker]: ...

    def init_signals(self) -> None:
        self.on_before_configured = Signal("on_before_configured")
        self.on_configured = Signal("on_configured")
        self.on_after_configured = Signal("on_after_configured")
        self.on_worker_init = Signal("on_worker_init")
        if not hasattr(type(self), "on_started"):
            self.on_started = Signal("on_started")
        self.on_partitions_assigned = Signal("on_partitions_assigned")
        self.on_partitions_revoked = Signal("on_partitions_revoked")
        self.on_rebalance_complete = Signal("on_rebalance_complete")
        self.on_before_shutdown = Signal("on_before_shutdown")
        self.on_produce_message = Signal("on_produce_message")

    async def send_started(self) -> None:
        """Send the signals of a started query; methods of a subclass of the app are called too."""
        say_unheard()
        await self.on_worker_init.send(self)
        await self._hooks("on_first_start", "on_start")
        if self.on_partitions_assigned.connected:
            await self.on_partitions_assigned.send(self, assigned=self.partitions())
        await self.on_rebalance_complete.send(self)
        if isinstance(self.on_started, Signal):
            await self.on_started.send(self)
        await self._hooks("on_started")

    async def send_stopping(self) -> None:
        if self.on_partitions_revoked.connected:
            await self.on_partitions_revoked.send(self, revoked=self.partitions())
        await self.on_before_shutdown.send(self)
        await self._hooks("on_stop", "on_shutdown")

    async def _hooks(self, *names: str) -> None:
        """Call the methods of a subclass of the app that have the names of service callbacks."""
        for name in names:
            hook = getattr(type(self), name, None)
            if hook is None:
                continue
            try:
                answer = hook(self)
                if isawaitable(answer):
                    await answer
            except Exception:
                _logger.exception("%s of %s failed", name, type(self).__name__)

    def send_configured(self) -> None:
        """Send the signals before the command line is run."""
        self.on_before_configured.send_now(self)
        self.on_configured.send_now(self, conf=getattr(self, "conf", None))
        self.on_after_configured.send_now(self)

    def partitions(self) -> set[TP]:
        """Return the partitions of all topics that agents read."""
        log = self.log()
        names = {name for agent in self.agents.values() for name in agent.topic.names}
        return {
            TP(name, partition) for name in names if log.has_topic(name) for partition in range(log.partitions(name))
        }

"""Channels: values that agents pass to each other in memory, while a record is processed."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from potok.errors import QueryError
from potok.faust.messaging.sending import Callback, Destination, Sent, with_callback
from potok.faust.unsupported import REFUSED, without
from potok.operators.agents import context
from potok.operators.agents.values import copied

if TYPE_CHECKING:
    from potok.faust.app import App


class OnlyAgentsPut(QueryError):
    """A channel that was used outside of agents."""

    def __init__(self, channel: str) -> None:
        super().__init__(
            f'channel "{channel}" exists in the memory of agents while they process a record: '
            "timers, tasks and pages cannot put values into it",
            hint="make it a topic: app.topic(...) instead of app.channel(...)",
        )


@without(REFUSED["Channel"])
class Channel(Destination):
    """Passes values from agents to an agent, in memory. A value is processed before the next record, and
    succeeds or fails with the current record.

    >>> alerts = app.channel()
    >>> await alerts.put(order)
    """

    def __init__(self, app: App, name: str) -> None:
        self.app, self.name, self.names = app, name, (name,)
        self._sent = Sent(name)

    def __repr__(self) -> str:
        return f'<Channel "{self.name}">'

    def put(self, value: Any) -> Awaitable[Sent]:
        running = context.current()
        if running is None:
            raise OnlyAgentsPut(self.name)
        running.posted.append((self.name, copied(value)))
        return self._sent

    def send(self, *, value: Any = None, callback: Callback | None = None, **_: Any) -> Awaitable[Sent]:
        """Like `put`, under the name that topics have."""
        return self.put(value) if callback is None else with_callback(self.put(value), callback)

    def send_soon(self, **options: Any) -> Awaitable[Sent]:
        return self.send(**options)

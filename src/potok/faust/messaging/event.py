"""The current record of an agent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from potok.errors import QueryError
from potok.faust.messaging.message import Message
from potok.faust.messaging.topic import by_name
from potok.operators.agents import context
from potok.topology.processor import Position

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from potok.faust.app import App
    from potok.faust.messaging.sending import Destination, Sent

AS_IT_IS: Any = object()
"""Reuse the value of the current record."""


class NoEvent(QueryError):
    """The current record was requested where there is none."""

    def __init__(self) -> None:
        super().__init__("there is no current record here", hint="call current_event() inside an agent")


@dataclass(frozen=True, slots=True)
class Event:
    """A record: its key, value, headers and position."""

    key: Any
    value: Any
    headers: dict[str, bytes]
    message: Message
    app: App | None = None

    def of(self, value: Any) -> Event:
        """Return the same record with a processed value."""
        return replace(self, value=value)

    async def forward(
        self,
        channel: Any,
        key: Any = AS_IT_IS,
        value: Any = AS_IT_IS,
        partition: int | None = None,
        timestamp: Any = None,
        headers: Any = AS_IT_IS,
        **options: Any,
    ) -> Sent:
        """Forward the record to a topic, a channel, an agent or a topic by name, with another key, value or
        headers if given.
        """
        return await _sending(channel)(
            key=self.key if key is AS_IT_IS else key,
            value=self.value if value is AS_IT_IS else value,
            partition=partition,
            timestamp=timestamp,
            headers=self.headers if headers is AS_IT_IS else headers,
            **options,
        )

    async def send(self, channel: Any, key: Any = AS_IT_IS, value: Any = AS_IT_IS, **options: Any) -> Sent:
        """Like `forward`, without the headers."""
        return await self.forward(channel, key, value, **{"headers": None, **options})

    def ack(self) -> bool:
        """Do nothing: records are acknowledged when their batch commits."""
        return True

    acked = False

    async def __aenter__(self) -> Event:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


def _sending(channel: Any) -> Callable[..., Awaitable[Sent]]:
    destination: Destination = by_name(channel) if isinstance(channel, str) else channel
    return destination.send


def current_event() -> Event:
    """Return the record that the agent is processing."""
    running = context.current()
    if running is None or running.chunk is None:
        raise NoEvent
    headers = dict(running.headers)
    topic, partition, offset = running.position or Position("", 0, 0)
    message = Message(topic, partition, offset, running.timestamp / 1000, running.key, running.value, headers)
    return Event(running.key, running.value, headers, message)

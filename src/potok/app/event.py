"""The record at hand, as an agent may look at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from potok.errors import QueryError
from potok.kernels import agents_running
from potok.topology.processor import Position


class NoEvent(QueryError):
    """Asked for the record at hand where there is none."""

    def __init__(self) -> None:
        super().__init__("there is no record at hand here", hint="ask for current_event() inside an agent")


@dataclass(frozen=True, slots=True)
class Message:
    """Where a record was read, and when it happened; the time is in seconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: float
    key: Any
    value: Any
    headers: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Event:
    """A record: its key, its value and all the rest."""

    key: Any
    value: Any
    headers: dict[str, bytes]
    message: Message

    async def forward(self, topic: Any, *, key: Any = None, value: Any = None, **options: Any) -> None:
        """Send the record on, with another key or value if one is given."""
        chosen = self.value if value is None else value
        await topic.send(key=self.key if key is None else key, value=chosen, headers=self.headers, **options)

    async def send(self, topic: Any, **options: Any) -> None:
        await self.forward(topic, **options)

    def ack(self) -> bool:
        """Records are done with when their batch commits."""
        return True


def current_event() -> Event:
    """The record that the agent is looking at."""
    running = agents_running.current
    if running is None or running.chunk is None:
        raise NoEvent
    headers = dict(running.headers)
    topic, partition, offset = running.position or Position("", 0, 0)
    message = Message(topic, partition, offset, running.timestamp / 1000, running.key, running.value, headers)
    return Event(running.key, running.value, headers, message)

"""The result of a send: the position of the record, callbacks, and sends from outside of agents."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from potok.faust.messaging.message import TP

if TYPE_CHECKING:
    from potok.faust.app import App


@dataclass(frozen=True, slots=True)
class Sent:
    """The position of a sent record: the result of `await topic.send(...)`. Faust returns a future of it, so it can be
    awaited again. The position of what an agent sends is known only when the batch commits.
    """

    topic: str
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None

    @property
    def topic_partition(self) -> TP | None:
        return None if self.partition is None else TP(self.topic, self.partition)

    tp = topic_partition

    def done(self) -> bool:
        return True

    def result(self) -> Sent:
        return self

    def __await__(self) -> Generator[Any, Any, Sent]:
        return self
        yield  # makes it a generator, the fastest awaitable that returns a value


class Destination:
    """The destination of a send: a topic, a channel or an agent."""

    def send(self, *args: Any, **kwargs: Any) -> Awaitable[Sent]:
        raise NotImplementedError


Callback = Callable[[Sent], Any]


def send_outside(app: App, topic: str, *record: Any) -> Awaitable[Sent]:
    """Append a record: it is durable once this has been awaited or, without an event loop, when it returns."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return app.produce(topic, *record)
    # Pages and tasks that share the loop must not wait for a disk.
    return loop.run_in_executor(_sender(), app.produce, topic, *record)


def with_callback(sending: Awaitable[Sent], callback: Callback) -> Awaitable[Sent]:
    """Return the same send; a callback receives the position of the record, whether or not the send is awaited."""
    if not isinstance(sending, Sent):
        return asyncio.ensure_future(_notify(sending, callback))
    answer = callback(sending)
    return _answered(answer, sending) if isawaitable(answer) else sending


async def _notify(sending: Awaitable[Sent], callback: Callback) -> Sent:
    sent = await sending
    answer = callback(sent)
    return await _answered(answer, sent) if isawaitable(answer) else sent


async def _answered(answer: Awaitable[Any], sent: Sent) -> Sent:
    await answer
    return sent


@cache
def _sender() -> ThreadPoolExecutor:
    """Return one thread, so that records are appended in the order of the sends."""
    return ThreadPoolExecutor(1, "potok-send")

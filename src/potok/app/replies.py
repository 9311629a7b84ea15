"""Asking an agent, and waiting for what it yields: question and answer are records, found by a number of their own."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson

from potok.app.values import key_bytes, thawed, value_encoder
from potok.errors import QueryError
from potok.kernels import agents_running
from potok.log.consumer import Consumer

if TYPE_CHECKING:
    from potok.app.app import App
    from potok.app.topic import Topic

ASKED = "potok.ask"
"""The header of a question: the key of its answer."""


class NoReply(QueryError):
    """An agent that has not answered in time."""

    def __init__(self, agent: str, seconds: float) -> None:
        super().__init__(
            f'agent "{agent}" has not answered within {seconds:g} s',
            hint="see that the worker runs and the agent yields for each record; ask(..., timeout=60) waits longer",
        )


class AskedInside(QueryError):
    """An agent that waits for another: that one has its turn with a later batch."""

    def __init__(self, agent: str) -> None:
        super().__init__(
            f'an agent cannot wait for agent "{agent}"', hint="cast() to it, or put into a channel that it takes"
        )


def uuid() -> str:
    """A name that nobody else has."""
    return str(uuid4())


def replies_topic(app: str) -> str:
    return f"{app}-replies"


def reply(app: str, result: Any) -> None:
    """Send what an agent has yielded to who asked for it, if somebody did."""
    running = agents_running.current
    if running is None:
        return
    asked = [data for name, data in running.headers if name == ASKED]
    if asked:
        running.send(replies_topic(app), asked[0], value_encoder("json", None)(result))


async def ask(app: App, agent: str, topic: Topic, value: Any, key: Any, timeout: float) -> Any:
    if agents_running.current is not None:
        raise AskedInside(agent)
    number = uuid4().hex.encode()
    log = app.log()
    log.create_topic(replies_topic(app.id), 1, exist_ok=True)
    with Consumer(log, replies_topic(app.id)) as consumer:
        await topic.send(key=key_bytes(key), value=value, headers={ASKED: number})
        found = await asyncio.to_thread(_answer, consumer, number, time.monotonic() + timeout)
    if found is None:
        raise NoReply(agent, timeout)
    return thawed(orjson.loads(found))


def _answer(consumer: Consumer, number: bytes, until: float) -> bytes | None:
    while (left := until - time.monotonic()) > 0:
        for record in consumer.poll(timeout=min(left, 1.0)):
            if record.key == number:
                return record.value if record.value is not None else b"null"
    return None

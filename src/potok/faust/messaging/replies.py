"""Ask an agent, and wait for what it yields: question and answer are records with a correlation id."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson

from potok.errors import QueryError
from potok.faust.records.values import key_bytes, thawed, value_encoder
from potok.log.clients.consumer import Consumer
from potok.operators.agents import context
from potok.operators.agents.context import Headers
from potok.records.log_record import LogRecord

if TYPE_CHECKING:
    from potok.faust.app import App
    from potok.faust.messaging.topic import Topic

ASKED = "potok.ask"
"""The header of a question: the key of its answer."""

FAILED = "potok.failed"
"""The header of a failure: the agent that failed."""

LOOK_S = 0.5
"""How long one poll for an answer takes; a worker that stops waits at most this long."""


class NoReply(QueryError):
    """An agent that did not answer in time."""

    def __init__(self, agent: str, seconds: float, app: str) -> None:
        super().__init__(
            f'agent "{agent}" has not answered within {seconds:g} s',
            hint="check that the worker runs, that the agent yields for each record, and that the question is not a "
            f"dead letter: potok dead-letters list --query {app}; ask(..., timeout=60) waits longer",
        )


class AskFailed(QueryError):
    """An agent that raised instead of answering."""

    def __init__(self, agent: str, why: str, app: str) -> None:
        super().__init__(
            f'agent "{agent}" has failed: {why}',
            hint=f"the question is a dead letter: potok dead-letters list --query {app}",
        )
        self.agent, self.why = agent, why


class AskedInside(QueryError):
    """An agent that waits for another, which runs only in a later batch."""

    def __init__(self, agent: str) -> None:
        super().__init__(
            f'an agent cannot wait for agent "{agent}"',
            hint="cast() to it, or put a value into a channel that it reads",
        )


def uuid() -> str:
    """Return a unique name."""
    return str(uuid4())


def replies_topic(app: str) -> str:
    return f"{app}-replies"


def reply(app: str, result: Any) -> None:
    """Send what an agent yielded to the caller, if the record is a question."""
    _answer_who_asked(app, lambda: value_encoder("json", None)(result))


def reply_failure(app: str, agent: str, why: str) -> None:
    """Send what an agent raised to the caller, if the record is a question."""
    _answer_who_asked(app, lambda: orjson.dumps(why), ((FAILED, agent.encode()),))


def _answer_who_asked(app: str, answer: Callable[[], bytes | None], headers: Headers | None = None) -> None:
    running = context.current()
    if running is None:
        return
    asked = [data for name, data in running.headers if name == ASKED]
    if asked:
        running.send(replies_topic(app), asked[0], answer(), headers=headers)


async def ask(app: App, agent: str, topic: Topic, value: Any, key: Any, timeout: float) -> Any:
    if context.current() is not None:
        raise AskedInside(agent)
    number = uuid4().hex.encode()
    log = app.log()
    log.create_topic(replies_topic(app.id), 1, exist_ok=True)
    with Consumer(log, replies_topic(app.id)) as consumer:
        await topic.send(key=key_bytes(key), value=value, headers={ASKED: number})
        found = await _answer(consumer, agent, number, time.monotonic() + timeout)
    if found is None:
        raise NoReply(agent, timeout, app.id)
    data = orjson.loads(found.value if found.value is not None else b"null")
    if _failed_by(found):
        raise AskFailed(agent, str(data), app.id)
    return thawed(data)


async def _answer(consumer: Consumer, agent: str, number: bytes, until: float) -> LogRecord | None:
    """Return the first answer; the failure of another agent that reads the same records does not count."""
    while (left := until - time.monotonic()) > 0:
        for record in await _polled(consumer, min(left, LOOK_S)):
            if record.key == number and _failed_by(record) in (b"", agent.encode()):
                return record
    return None


async def _polled(consumer: Consumer, seconds: float) -> Sequence[LogRecord]:
    """Return new answers. A cancelled caller waits for the polling thread, because the consumer is closed
    after it.
    """
    look = asyncio.ensure_future(asyncio.to_thread(consumer.poll, timeout=seconds))
    try:
        return await asyncio.shield(look)
    except asyncio.CancelledError:
        await asyncio.wait([look])
        raise


def _failed_by(answer: LogRecord) -> bytes:
    """Return the agent that failed instead of answering."""
    return dict(answer.headers).get(FAILED) or b""

"""Publish the records of a batch to RabbitMQ, and wait until it confirms them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from pamqp.commands import Basic

from potok.event_loop import EventLoop
from potok.redact import redact
from potok.retry_policy import BRIEFLY_MS, GIVE_UP_MS, Retry
from potok.sinks.errors import DeliveryFailed
from potok.sinks.guarantee import Guarantee
from potok.sinks.messages.message_ids import message_ids
from potok.sinks.sink_spec import Batch, Failures, Opening, Rows, SinkWriter
from potok.sinks.urls import clear_url, remember_url

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection
    from aiormq.abc import AbstractChannel

    from potok.sinks.messages.rabbitmq import RabbitMqTarget

CONNECT_S, CONFIRM_S = 10.0, 30.0
WINDOW, WINDOW_BYTES = 1_000, 8 << 20
"""The most messages, and the most bytes, that are published and not confirmed."""

LONGEST_NAME = 128
"""The most bytes of the name of a header, which the client would cut off."""

_PERSISTENT, _TRANSIENT = 2, 1
_TOO_LARGE = re.compile(r"message size \d+ is larger than configured max size (\d+)")


@dataclass(frozen=True, slots=True)
class Message:
    """A record as it is published."""

    routing_key: str
    body: bytes
    properties: Basic.Properties


@dataclass(slots=True)
class Round:
    """What became of some messages until all were confirmed, or the channel ended."""

    left: list[int]
    """The messages that are not confirmed."""

    uncertain: list[int] = field(default_factory=list)
    """Those of them that may have arrived."""

    failures: Failures = field(default_factory=dict)
    cause: str = ""
    fatal: str = ""
    """Why no retry can help."""


class RabbitMqWriter(SinkWriter):
    """Publishes in order, some messages at a time, and repeats what was not confirmed, under the same ids.

    A message that no queue takes, or that is too large, becomes a dead letter. With at_most_once nothing is published
    twice: what may have arrived without a confirmation becomes a dead letter.
    """

    def __init__(self, target: RabbitMqTarget, opening: Opening) -> None:
        self._target, self._opening = target, opening
        self._once = opening.guarantee is Guarantee.AT_MOST_ONCE
        remember_url(target.url)
        self._loop = EventLoop(f"potok-rabbitmq-{opening.step}")
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        try:
            self._deliver(opening.committed + 1, [], GIVE_UP_MS)
        except BaseException:
            self.close()
            raise

    def deliver(self, batch: Batch, rows: Rows) -> Failures:
        return self._deliver(batch.number, self._messages(batch, rows), GIVE_UP_MS if self._once else BRIEFLY_MS)

    def _deliver(self, batch: int, messages: Sequence[Message], retry_ms: int) -> Failures:
        """Publish, on one connection after the other, until everything is settled."""
        failures: Failures = {}
        left = list(range(len(messages)))
        retry = self._retry(retry_ms)
        while True:
            done = self._loop.run(self._round(messages, left), None)
            failures |= done.failures
            if done.fatal:
                raise self._failed(batch, done.fatal, passing=False)
            if not done.cause:
                return dict(sorted(failures.items()))
            if self._once:
                failures |= dict.fromkeys(done.uncertain, f"not confirmed: {done.cause}")
                done.left = [row for row in done.left if row not in failures]
            if len(done.left) < len(left):
                retry = self._retry(retry_ms)
            left = done.left
            if not retry.wait():
                if self._once and messages:
                    return failures | dict.fromkeys(left, f"not published: {done.cause}")
                raise self._failed(batch, done.cause, passing=True)

    def _retry(self, retry_ms: int) -> Retry:
        return Retry(self._target.give_up_after_ms or retry_ms)

    async def _round(self, messages: Sequence[Message], rows: list[int]) -> Round:
        from aiormq.exceptions import AMQPError, ChannelInvalidStateError

        done = Round(rows)
        channel: AbstractChannel | None = None
        try:
            channel = await self._opened()
            while done.left and not done.cause:
                await self._publish(channel, messages, done)
        except (AMQPError, ChannelInvalidStateError, OSError, TimeoutError) as error:
            done.cause = _told(error)
            done.fatal = _fatal(error)
        if done.cause and not done.fatal and channel is not None:
            # Why the server closed the channel says more than that it is closed.
            why = channel.closing.exception() if channel.closing.done() and not channel.closing.cancelled() else None
            self._explain(why, messages, done)
        if done.cause:
            await self._disconnect()
        return done

    async def _publish(self, channel: AbstractChannel, messages: Sequence[Message], done: Round) -> None:
        """Publish the next messages, and wait for their confirmations."""
        from aiormq.exceptions import AMQPError, ChannelInvalidStateError, DeliveryError, PublishError

        window = _window(messages, done.left)
        answers: list[Any] = await asyncio.gather(
            *(self._send(channel, messages[row]) for row in window), return_exceptions=True
        )
        left: list[int] = []
        for row, answer in zip(window, answers, strict=True):
            if isinstance(answer, PublishError) and self._target.queue is not None:
                # The queue was deleted; the next connection declares it again.
                left.append(row)
                done.cause = f'the queue "{self._target.queue}" does not exist'
            elif isinstance(answer, PublishError):
                done.failures[row] = f"no queue takes it: {answer.message.delivery.reply_text}"
            elif isinstance(answer, DeliveryError):
                left.append(row)
                done.cause = "RabbitMQ did not take a message: a queue is full, or has failed"
            elif isinstance(answer, AMQPError | ChannelInvalidStateError | OSError | TimeoutError | asyncio.CancelledError):
                left.append(row)
                done.uncertain.append(row)
                done.cause = done.cause or _told(answer)
            elif isinstance(answer, Exception):
                done.failures[row] = f"it cannot be published: {answer}"
        done.left = left + done.left[len(window) :]

    async def _send(self, channel: AbstractChannel, message: Message) -> None:
        if any(len(name.encode()) > LONGEST_NAME for name in message.properties.headers or ()):
            raise ValueError(f"the name of a header is longer than {LONGEST_NAME} bytes")
        await channel.basic_publish(
            message.body,
            exchange=self._target.exchange or "",
            routing_key=message.routing_key,
            properties=message.properties,
            mandatory=True,
            timeout=CONFIRM_S,
            wait=False,
        )

    def _explain(self, why: BaseException | None, messages: Sequence[Message], done: Round) -> None:
        """Note why the server closed the channel. It does so for a message that is too large."""
        if why is None:
            return
        done.cause, done.fatal = _told(why), _fatal(why)
        found = _TOO_LARGE.search(done.cause)
        if found is not None:
            most = int(found[1])
            large = {row for row in done.left if len(messages[row].body) > most}
            done.failures |= dict.fromkeys(large, f"the message is larger than {most} bytes, the most that RabbitMQ takes")
            done.left = [row for row in done.left if row not in large]
            done.uncertain = [row for row in done.uncertain if row not in large]
            done.fatal = "" if large else done.cause

    async def _opened(self) -> AbstractChannel:
        if self._channel is not None and not self._channel.is_closed:
            return self._channel
        import aio_pika

        await self._disconnect()
        target = self._target
        self._connection = await aio_pika.connect(str(clear_url(target.url)), timeout=CONNECT_S)
        channel = await self._connection.channel(publisher_confirms=True, on_return_raises=True)
        if target.queue is not None:
            await channel.declare_queue(target.queue, durable=True, passive=not target.declare, timeout=CONNECT_S)
        else:
            await channel.get_exchange(target.exchange or "", ensure=True)
        # The channel beneath publishes without the objects around a message, which cost most of the time.
        self._channel = await channel.get_underlay_channel()
        return self._channel

    async def _disconnect(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            await asyncio.gather(connection.close(), return_exceptions=True)

    def _messages(self, batch: Batch, rows: Rows) -> list[Message]:
        bodies, mode = _pylist(rows.value), _PERSISTENT if self._target.persistent else _TRANSIENT
        headers = repeat(None) if rows.headers is None else chain(rows.headers.to_pylist())
        parts = zip(_pylist(rows.key), bodies, message_ids(self._opening, batch, bodies), headers, strict=False)
        return [
            Message(
                routing_key,
                body,
                Basic.Properties(
                    content_type="application/json",
                    delivery_mode=mode,
                    message_id=identifier,
                    headers={each["name"]: _value(each["value"]) for each in found} if found else None,
                ),
            )
            for routing_key, body, identifier, found in parts
        ]

    def _failed(self, batch: int, cause: str, *, passing: bool) -> DeliveryFailed:
        passing = passing and self._target.give_up_after_ms is None
        remedy = "pass declare=False to use the queue as it is" if "inequivalent arg" in cause else None
        step, label, lost = self._opening.step, self._target.label, self._once
        return DeliveryFailed(step, label, batch, cause, lost=lost, passing=passing, remedy=remedy)

    def close(self) -> None:
        if self._loop.is_open:
            self._loop.run(self._disconnect())
            self._loop.close()


def _window(messages: Sequence[Message], rows: list[int]) -> list[int]:
    size = 0
    for number, row in enumerate(rows[:WINDOW]):
        size += len(messages[row].body)
        if size > WINDOW_BYTES and number:
            return rows[:number]
    return rows[:WINDOW]


def _told(error: BaseException) -> str:
    text = redact(str(error) or type(error).__name__)
    return f"no answer within {CONFIRM_S:g} seconds" if isinstance(error, TimeoutError) else text


def _fatal(error: BaseException) -> str:
    """Return why a retry cannot help: the exchange does not exist, or the user may not use it."""
    from aiormq.exceptions import (
        AuthenticationError,
        ChannelAccessRefused,
        ChannelNotFoundEntity,
        ChannelPreconditionFailed,
        ConnectionNotAllowed,
        ProbableAuthenticationError,
    )

    lasting = (
        AuthenticationError,
        ProbableAuthenticationError,
        ChannelAccessRefused,
        ChannelNotFoundEntity,
        ChannelPreconditionFailed,
        ConnectionNotAllowed,
    )
    return _told(error) if isinstance(error, lasting) else ""


def _value(header: bytes | None) -> str | bytearray | None:
    """Return the value of a header as AMQP has it: text, if it is text."""
    try:
        return None if header is None else header.decode()
    except UnicodeDecodeError:
        return bytearray(header or b"")


def _pylist(column: Any) -> list[Any]:
    found: list[Any] = column if isinstance(column, list) else column.to_pylist()
    return found

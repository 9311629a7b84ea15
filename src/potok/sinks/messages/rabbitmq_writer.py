"""Publish the records of a batch to RabbitMQ, and wait until it confirms them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, cast

from pamqp.commands import Basic

from potok.event_loop import EventLoop
from potok.redact import redact
from potok.sinks.messages.amqp import CONNECT_S, open_amqp
from potok.sinks.messages.confirmed import CONFIRM_S, WINDOW, ConfirmedWriter, Round
from potok.sinks.messages.message_ids import message_ids
from potok.sinks.sink_spec import Batch, Opening, Rows
from potok.sinks.urls import clear_url, remember_url

if TYPE_CHECKING:
    from aio_pika.abc import AbstractConnection
    from aiormq import Channel

    from potok.sinks.messages.rabbitmq import RabbitMqTarget

WINDOW_BYTES = 8 << 20
"""The most bytes that are published and not confirmed."""

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


class RabbitMqWriter(ConfirmedWriter[Message]):
    """Publishes some messages at a time. One that no queue takes, or that is too large, becomes a dead letter."""

    def __init__(self, target: RabbitMqTarget, opening: Opening) -> None:
        super().__init__(target.label, target.give_up_after_ms, opening)
        self._target = target
        remember_url(target.url)
        self._loop = EventLoop(f"potok-rabbitmq-{opening.step}")
        self._connection: AbstractConnection | None = None
        self._channel: Channel | None = None
        self.connect()

    def publish(self, messages: Sequence[Message], rows: list[int]) -> Round:
        return self._loop.run(self._round(messages, rows), None)

    async def _round(self, messages: Sequence[Message], rows: list[int]) -> Round:
        from aiormq.exceptions import AMQPError, ChannelInvalidStateError

        done = Round(rows)
        channel: Channel | None = None
        try:
            channel = await self._opened()
            while done.left and not done.cause:
                await self._publish(channel, messages, done)
        except (AMQPError, ChannelInvalidStateError, OSError, TimeoutError) as error:
            done.cause = _describe(error)
            done.fatal = _fatal(error)
        if done.cause and not done.fatal and channel is not None:
            # Why the server closed the channel says more than that it is closed.
            why = channel.closing.exception() if channel.closing.done() and not channel.closing.cancelled() else None
            self._explain(why, messages, done)
        if done.cause:
            await self._disconnect()
        return done

    async def _publish(self, channel: Channel, messages: Sequence[Message], done: Round) -> None:
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
                done.failures[row] = f"no queue takes it: {answer.args[0]}"
            elif isinstance(answer, DeliveryError):
                left.append(row)
                done.cause = "RabbitMQ did not take a message: a queue is full, or has failed"
            elif isinstance(
                answer, AMQPError | ChannelInvalidStateError | OSError | TimeoutError | asyncio.CancelledError
            ):
                left.append(row)
                done.uncertain.append(row)
                done.cause = done.cause or _describe(answer)
            elif isinstance(answer, Exception):
                done.failures[row] = f"it cannot be published: {answer}"
        done.left = left + done.left[len(window) :]

    async def _send(self, channel: Channel, message: Message) -> None:
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
        done.cause, done.fatal = _describe(why), _fatal(why)
        found = _TOO_LARGE.search(done.cause)
        if found is not None:
            most = int(found[1])
            large = {row for row in done.left if len(messages[row].body) > most}
            done.failures |= dict.fromkeys(
                large, f"the message is larger than {most} bytes, the most that RabbitMQ takes"
            )
            done.left = [row for row in done.left if row not in large]
            done.uncertain = [row for row in done.uncertain if row not in large]
            done.fatal = not large

    async def _opened(self) -> Channel:
        if self._channel is not None and not self._channel.is_closed:
            return self._channel
        await self._disconnect()
        target = self._target
        self._connection = await open_amqp(str(clear_url(target.url)))
        channel = await self._connection.channel(publisher_confirms=True, on_return_raises=True)
        if target.queue is not None:
            await channel.declare_queue(target.queue, durable=True, passive=not target.declare, timeout=CONNECT_S)
        else:
            await channel.get_exchange(target.exchange or "", ensure=True)
        # The channel beneath publishes without the objects around a message, which cost most of the time.
        self._channel = cast("Channel", await channel.get_underlay_channel())
        return self._channel

    async def _disconnect(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            await asyncio.gather(connection.close(), return_exceptions=True)

    def messages(self, batch: Batch, rows: Rows) -> list[Message]:
        bodies, mode = rows.values, _PERSISTENT if self._target.persistent else _TRANSIENT
        headers = repeat(None) if rows.headers is None else chain(rows.headers.to_pylist())
        parts = zip(rows.keys, bodies, message_ids(self._opening, batch, bodies), headers, strict=False)
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


def _describe(error: BaseException) -> str:
    text = redact(str(error) or type(error).__name__)
    return f"no answer within {CONFIRM_S:g} seconds" if isinstance(error, TimeoutError) else text


def _fatal(error: BaseException) -> bool:
    """Return whether a retry cannot help: the exchange does not exist, or the user may not use it."""
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
    return isinstance(error, lasting)


def _value(header: bytes | None) -> str | bytearray | None:
    """Return the value of a header as AMQP has it: text, if it is text."""
    try:
        return None if header is None else header.decode()
    except UnicodeDecodeError:
        return bytearray(header or b"")

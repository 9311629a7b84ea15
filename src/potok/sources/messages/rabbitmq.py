"""Consume a queue of RabbitMQ: AMQP 0-9-1."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from potok.duration import Duration
from potok.errors import TopologyError
from potok.event_loop import EventLoop
from potok.records.log_record import LogRecord
from potok.redact import redact
from potok.retry_policy import Retry
from potok.sinks.messages.amqp import open_amqp
from potok.sources.appender import STOPPED
from potok.sources.arrival import Done
from potok.sources.counters import FULL
from potok.sources.deduplication import Deduplication
from potok.sources.listener import Listener, ListenerContext, ListenerSpec, option
from potok.sources.messages.acknowledgements import Acknowledgements, Delivery
from potok.sources.messages.intake import Intake, Message
from potok.sources.messages.parts import check_part, part_of

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, DeliveredMessage

_LOOK_S = 0.01
_PROPERTIES = ("message_id", "correlation_id", "routing_key", "message_type", "app_id", "user_id")

_logger = logging.getLogger("potok.sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMq(ListenerSpec):
    """Messages of a queue, one record each, with their headers. A message is acknowledged once its record is in the
    log, so RabbitMQ delivers it again after a crash; with `id`, what is delivered again does not land twice. When the
    buffer is full, `block` withholds acknowledgements, and RabbitMQ stops after `prefetch` messages; `reject` refuses
    messages, and RabbitMQ moves them to the queue's dead-letter exchange, if it has one.
    """

    kind: ClassVar[str] = "rabbitmq"
    extra: ClassVar[str | None] = "rabbitmq"

    url: str = option("amqp://USER:PASSWORD@HOST:PORT/VHOST, or amqps:// for TLS.", repr=False)
    queue: str = option("The queue.")
    declare: bool = option("Declare the queue as durable; otherwise it has to exist.", default=True)
    exchange: str | None = option("An exchange to bind the queue to; it has to exist.", default=None)
    routing_keys: tuple[str, ...] = option("The routing keys of the binding.", default=("#",))
    prefetch: int = option("Maximum number of unacknowledged messages.", default=2_000)
    key: str | None = option(
        "What becomes the key of a record: `message_id`, `correlation_id`, `routing_key`, `header:NAME` or "
        "`body:FIELD.FIELD`.",
        default=None,
    )
    id: str | None = option("What identifies a message, in the same form.", default=None)
    remember_ids: Duration = option("How long ids are remembered.", default="1 hour")
    max_ids: int = option("Maximum number of remembered ids.", default=1_000_000)

    def check(self) -> None:
        ListenerSpec.check(self)
        if not self.url.startswith(("amqp://", "amqps://")):
            raise TopologyError("the url is not one of AMQP", hint='write url = "amqp://guest:guest@localhost:5672/"')
        if not self.queue:
            raise TopologyError("the queue has no name", hint='write queue = "orders"')
        if not 1 <= self.prefetch <= 65_535:
            raise TopologyError(f"prefetch = {self.prefetch} is out of range", hint="write a number from 1 to 65535")
        check_part("key", self.key, _PROPERTIES)
        check_part("id", self.id, _PROPERTIES)

    def open(self, context: ListenerContext) -> Listener:
        return RabbitMqListener(self, context)


class _Connection:
    """A channel that consumes, and what it has delivered."""

    def __init__(self, channel: AbstractChannel) -> None:
        self.channel = channel
        self.incoming: list[Message] = []
        self.last_tag = 0
        self.unsettled: Acknowledgements[int] = Acknowledgements()
        self.settled: list[Delivery[int]] = []
        self.acknowledging: asyncio.Task[None] | None = None
        self.is_open = True


class RabbitMqListener(Listener):
    """A connection on an event loop, opened again whenever it ends."""

    def __init__(self, spec: RabbitMq, context: ListenerContext) -> None:
        self._spec, self._context = spec, context
        self._intake = Intake(context, Deduplication.of(spec, context.broker, "message"))
        self._problem: str | None = "not connected yet"
        self._connections = 0
        self._given_up = threading.Event()
        self._loop = EventLoop(f"potok-rabbitmq-{spec.name}")
        self._stopping = asyncio.Event()
        self._supervisor: asyncio.Task[None] | None = None
        self._running: _Connection | None = None

    def start(self) -> None:
        async def begin() -> None:
            self._supervisor = asyncio.create_task(self._supervise())

        self._loop.run(begin())

    def stop(self) -> None:
        """Consume nothing more. The connection stays open for the acknowledgements of what is buffered."""

        async def end() -> None:
            self._stopping.set()

        self._given_up.set()
        self._loop.run(end())

    def close(self) -> None:
        async def end() -> None:
            if self._running is not None and self._running.acknowledging is not None:
                await self._running.acknowledging
            if self._supervisor is not None:
                self._supervisor.cancel()
                await asyncio.gather(self._supervisor, return_exceptions=True)

        if self._loop.is_open:
            self._loop.run(end())
            self._loop.close()

    @property
    def problem(self) -> str | None:
        return self._problem

    def state(self) -> dict[str, Any]:
        return {"connections": self._connections}

    async def _supervise(self) -> None:
        """Keep a connection open. RabbitMQ delivers again what an ended one did not acknowledge."""
        from aiormq.exceptions import AMQPError, ChannelInvalidStateError

        retry = Retry(0, self._given_up)
        while not self._stopping.is_set():
            before = self._connections
            try:
                await self._consume()
            except (AMQPError, ChannelInvalidStateError, OSError, TimeoutError, ValueError) as error:
                self._report(str(error) or type(error).__name__)
            if self._connections > before:
                retry = Retry(0, self._given_up)
            pause_s = retry.pause()
            try:
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            except TimeoutError:
                continue

    def _report(self, problem: str) -> None:
        text = redact(problem)
        if self._problem != text:
            _logger.warning('listener "%s": RabbitMQ cannot be consumed: %s', self._spec.name, text)
        self._problem = text

    async def _consume(self) -> None:
        connection = await open_amqp(self._spec.url)
        try:
            channel = await connection.channel(publisher_confirms=False)
            await channel.set_qos(prefetch_count=self._spec.prefetch)
            queue = await channel.declare_queue(self._spec.queue, durable=True, passive=not self._spec.declare)
            if self._spec.exchange is not None:
                for routing_key in self._spec.routing_keys:
                    await queue.bind(self._spec.exchange, routing_key)
            # The channel beneath delivers a message without the objects around it, which cost most of the time.
            raw = await channel.get_underlay_channel()
            running = self._running = _Connection(raw)
            cancelled = asyncio.Event()
            raw.on_consumer_cancel_callbacks.add(lambda *_: cancelled.set())

            async def receive(message: DeliveredMessage) -> None:
                self._receive(running, message)

            consumer = await raw.basic_consume(self._spec.queue, receive)
            self._connections += 1
            self._problem = None
            try:
                await self._until_over(running, cancelled, str(consumer.consumer_tag))
            finally:
                running.is_open = False
        finally:
            await connection.close()

    async def _until_over(self, running: _Connection, cancelled: asyncio.Event, consumer: str) -> None:
        """Wait until the channel ends; once the listener stops, until everything is acknowledged."""
        ended = asyncio.ensure_future(asyncio.wait({running.channel.closing}))
        others = [asyncio.create_task(each.wait()) for each in (cancelled, self._stopping)]
        try:
            await asyncio.wait([ended, *others], return_when=asyncio.FIRST_COMPLETED)
            if cancelled.is_set():
                self._report(f'the consumer of the queue "{self._spec.queue}" was cancelled')
            elif running.channel.closing.done():
                error = running.channel.closing.exception()
                self._report(str(error or "the connection ended"))
            else:
                await running.channel.basic_cancel(consumer)
                # Ended by `close`, after the last acknowledgement.
                await ended
        finally:
            for task in (ended, *others):
                task.cancel()

    def _receive(self, running: _Connection, message: DeliveredMessage) -> None:
        running.incoming.append(self._message(message))
        running.last_tag = message.delivery_tag or 0
        if len(running.incoming) == 1:
            asyncio.get_running_loop().call_soon(self._hand_over, running)

    def _hand_over(self, running: _Connection) -> None:
        """Hand over what has arrived since the last time. While the buffer is full, RabbitMQ waits: prefetch."""
        if not running.is_open or self._stopping.is_set() or not running.incoming:
            return
        delivery = running.unsettled.add(running.last_tag)
        if self._intake.offer(running.incoming, self._done(running, delivery)):
            running.incoming.clear()
        elif self._spec.overload.when_full == "reject":
            self._context.counters.refused(FULL, len(running.incoming))
            running.incoming.clear()
            self._settle(running, delivery, FULL)
        else:
            running.unsettled.take_back()
            asyncio.get_running_loop().call_later(_LOOK_S, self._hand_over, running)

    def _done(self, running: _Connection, delivery: Delivery[int]) -> Done:
        loop = self._loop.loop

        def done(problem: str | None) -> None:
            if problem != STOPPED:
                loop.call_soon_threadsafe(self._settle, running, delivery, problem)

        return done

    def _settle(self, running: _Connection, delivery: Delivery[int], problem: str | None) -> None:
        running.settled += running.unsettled.settle(delivery, problem)
        if running.settled and running.is_open and running.acknowledging is None:
            running.acknowledging = asyncio.create_task(self._acknowledge(running))

    async def _acknowledge(self, running: _Connection) -> None:
        """Acknowledge what is settled. One task for each connection does so: an earlier tag must not follow a later."""
        from aiormq.exceptions import AMQPError, ChannelInvalidStateError

        try:
            while running.settled:
                settled, running.settled = running.settled, []
                for each, following in zip_longest(settled, settled[1:]):
                    if following is not None and (following.problem is None) == (each.problem is None):
                        continue
                    if each.problem is None:
                        await running.channel.basic_ack(each.tags, multiple=True, wait=False)
                    else:
                        # RabbitMQ moves what is lost here to the queue's dead-letter exchange, if it has one.
                        await running.channel.basic_nack(each.tags, multiple=True, requeue=False, wait=False)
        except (AMQPError, ChannelInvalidStateError, OSError):
            # The connection is over; RabbitMQ delivers the messages again.
            return
        finally:
            running.acknowledging = None

    def _message(self, found: DeliveredMessage) -> Message:
        properties = found.header.properties
        headers: Mapping[str, Any] = properties.headers or {}
        record = LogRecord(
            self._part(self._spec.key, found), found.body, headers=tuple((n, _bytes(v)) for n, v in headers.items())
        )
        identifier = self._part(self._spec.id, found)
        return Message(record, None if identifier is None else identifier.decode())

    def _part(self, name: str | None, found: DeliveredMessage) -> bytes | None:
        if name is None:
            return None
        properties = found.header.properties
        if name == "routing_key":
            return (found.routing_key or "").encode()
        named = {} if ":" in name else {name: getattr(properties, name)}
        text = part_of(name, found.body, properties.headers or {}, named)
        return None if text is None else text.encode()


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else orjson.dumps(value, default=str)

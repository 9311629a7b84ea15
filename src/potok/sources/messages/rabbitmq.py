"""Consume a queue of RabbitMQ: AMQP 0-9-1."""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, ClassVar

import orjson

from potok.duration import Duration
from potok.errors import TopologyError
from potok.records.log_record import LogRecord
from potok.redact import redact
from potok.retry_policy import Retry
from potok.sources.arrival import Done
from potok.sources.counters import FULL, STOPPED
from potok.sources.deduplication import Deduplication
from potok.sources.listener import Listener, ListenerContext, ListenerSpec, option
from potok.sources.messages.acknowledgements import Acknowledgements, Delivery
from potok.sources.messages.amqp import AmqpClosed, AmqpConnection, BadProperties, Delivered
from potok.sources.messages.intake import Intake, Message
from potok.sources.messages.parts import check_part, part_of

_LOOK_S, _IDLE_S, _STOP_S = 0.01, 0.2, 5.0
_PROPERTIES = ("message_id", "correlation_id", "routing_key", "message_type", "app_id", "user_id")

_logger = logging.getLogger("potok.sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class RabbitMq(ListenerSpec):
    """Messages of a queue, one record each, with their headers. A message is acknowledged once its record is in the
    log, so RabbitMQ delivers it again after a crash; with `id`, a redelivered message is not appended again. When the
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


class _Running:
    """A connection that consumes, and what it has delivered."""

    def __init__(self, connection: AmqpConnection) -> None:
        self.connection = connection
        self.incoming: list[Message] = []
        self.last_tag = 0
        self._unsettled: Acknowledgements[int] = Acknowledgements()
        # An arrival may be settled while it is offered, in the same thread.
        self._lock = threading.RLock()

    def begin(self) -> Delivery[int]:
        with self._lock:
            return self._unsettled.add(self.last_tag)

    def take_back(self) -> None:
        with self._lock:
            self._unsettled.take_back()

    def settle(self, delivery: Delivery[int], problem: str | None) -> None:
        """Acknowledge or refuse what is settled, in order."""
        with self._lock:
            settled = self._unsettled.settle(delivery, problem)
            for each, following in zip_longest(settled, settled[1:]):
                if following is not None and (following.problem is None) == (each.problem is None):
                    continue
                # If the connection is over, RabbitMQ delivers the messages again.
                with suppress(OSError):
                    if each.problem is None:
                        self.connection.acknowledge(each.tags)
                    else:
                        # RabbitMQ moves what is lost here to the queue's dead-letter exchange, if it has one.
                        self.connection.refuse(each.tags)


class RabbitMqListener(Listener):
    """A thread with one connection, opened again whenever it ends."""

    def __init__(self, spec: RabbitMq, context: ListenerContext) -> None:
        self._spec, self._context = spec, context
        self._intake = Intake(context, Deduplication.of(spec, context.broker, "message"))
        self._problem: str | None = "not connected yet"
        self._connections = 0
        self._stopping, self._closing, self._idle = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._supervise, name=f"potok-rabbitmq-{spec.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Consume nothing more. The connection stays open for the acknowledgements of what is buffered."""
        self._stopping.set()
        if self._thread.is_alive():
            self._idle.wait(_STOP_S)

    def close(self) -> None:
        self._stopping.set()
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def problem(self) -> str | None:
        return self._problem

    def state(self) -> dict[str, Any]:
        return {"connections": self._connections}

    def _supervise(self) -> None:
        """Keep a connection open. RabbitMQ delivers again what an ended one did not acknowledge."""
        from pamqp.exceptions import PAMQPException

        retry = Retry(0, self._stopping)
        while not self._stopping.is_set():
            before = self._connections
            try:
                self._consume()
            except (OSError, ValueError, LookupError, struct.error, PAMQPException) as error:
                self._report(str(error) or type(error).__name__)
            if self._connections > before:
                retry = Retry(0, self._stopping)
            retry.wait()
        self._idle.set()

    def _report(self, problem: str) -> None:
        text = redact(problem)
        if self._problem != text and not self._stopping.is_set():
            _logger.warning('listener "%s": RabbitMQ cannot be consumed: %s', self._spec.name, text)
        self._problem = text

    def _consume(self) -> None:
        """Connect and consume until the connection ends; once the listener stops, until it is closed."""
        from pamqp.commands import Queue

        connection, spec = AmqpConnection(self._spec.url), self._spec
        try:
            declare = Queue.Declare(queue=spec.queue, durable=True, passive=not spec.declare)
            connection.call(declare, Queue.DeclareOk)
            for routing_key in spec.routing_keys if spec.exchange is not None else ():
                bind = Queue.Bind(queue=spec.queue, exchange=spec.exchange or "", routing_key=routing_key)
                connection.call(bind, Queue.BindOk)
            running = _Running(connection)
            consumer = connection.consume(spec.queue, spec.prefetch)
            self._connections += 1
            self._problem = None
            while not self._stopping.is_set():
                self._receive(running)
                if connection.cancelled:
                    raise AmqpClosed(f'the consumer of the queue "{spec.queue}" was cancelled')
            connection.cancel(consumer)
            self._idle.set()
            while not self._closing.wait(_LOOK_S):
                connection.receive(0.0)
                connection.keep_alive()
        finally:
            connection.close()

    def _receive(self, running: _Running) -> None:
        """Hand over what has arrived. While the buffer is full, RabbitMQ waits: prefetch."""
        connection = running.connection
        connection.keep_alive()
        if not running.incoming:
            delivered = connection.receive(_IDLE_S)
            if not delivered:
                return
            running.incoming = [self._message(each) for each in delivered]
            running.last_tag = delivered[-1].tag
        delivery = running.begin()
        if self._intake.offer(running.incoming, self._done(running, delivery)):
            running.incoming = []
        elif self._spec.overload.when_full == "reject":
            self._context.counters.refused(FULL, len(running.incoming))
            running.incoming = []
            running.settle(delivery, FULL)
        else:
            running.take_back()
            self._stopping.wait(_LOOK_S)

    def _done(self, running: _Running, delivery: Delivery[int]) -> Done:
        def done(problem: str | None) -> None:
            if problem != STOPPED:
                running.settle(delivery, problem)

        return done

    def _message(self, found: Delivered) -> Message:
        try:
            properties = found.properties()
            table: Mapping[str, Any] = properties.get("headers") or {}
            headers = tuple((name, _bytes(name, value)) for name, value in table.items()) if table else ()
        except BadProperties as error:
            return Message(LogRecord(None, found.body), problem=str(error))
        key, identifier = (
            None if name is None else self._part(name, found, properties, table)
            for name in (self._spec.key, self._spec.id)
        )
        return Message(LogRecord(None if key is None else key.encode(), found.body, headers=headers), identifier)

    def _part(
        self, name: str, found: Delivered, properties: Mapping[str, Any], headers: Mapping[str, Any]
    ) -> str | None:
        if name == "routing_key":
            return found.routing_key
        return properties.get(name) if ":" not in name else part_of(name, found.body, headers)


def _bytes(name: str, value: object) -> bytes | None:
    """Return the value of a header: bytes and text as they are, anything else as JSON. Raises `BadProperties`."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    try:
        return orjson.dumps(value, default=_text)
    except orjson.JSONEncodeError as error:
        raise BadProperties(f'its header "{name[:100]}" cannot be JSON: {error}') from error


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes | bytearray) else str(value)

"""Publish records to RabbitMQ: AMQP 0-9-1 with publisher confirms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from potok.errors import TopologyError
from potok.extras import need_extra
from potok.sinks.guarantee import Guarantee
from potok.sinks.messages.destination import KEY, addressed, longer_than
from potok.sinks.sink_spec import Opening, Prepared, Rows, SinkSpec, SinkWriter, Types
from potok.sinks.urls import address_of, clear_url

SCHEMES = ("amqp", "amqps")

LONGEST = 255
"""The most bytes of a routing key, and of the name of an exchange or a queue."""


@dataclass(frozen=True, slots=True)
class RabbitMqTarget(SinkSpec):
    """A queue, or an exchange with a routing key. The URL may contain a password and is not shown."""

    verb: ClassVar[str] = "to_rabbitmq"

    url: str = field(repr=False)
    queue: str | None
    exchange: str | None
    routing_key: str
    declare: bool
    persistent: bool
    give_up_after_ms: int | None
    with_key: bool

    @property
    def label(self) -> str:
        where = f'queue "{self.queue}"' if self.exchange is None else f'exchange "{self.exchange}"'
        return f"{where} at {address_of(self.url)}"

    def check(self, types: Types, guarantee: Guarantee) -> None:
        need_extra("to_rabbitmq", "rabbitmq")
        if self.url.partition(":")[0] not in SCHEMES or not clear_url(self.url).hosts:
            raise TopologyError("this is not a RabbitMQ server", hint='write "amqp://user:password@localhost:5672/"')
        if guarantee is Guarantee.EXACTLY_ONCE:
            raise TopologyError(
                "RabbitMQ cannot promise exactly_once: it does not recognise a message that is published again",
                hint="leave guarantee out: a message arrives at least once, always with the same message_id, by which "
                "its consumer recognises it",
            )
        if (self.queue is None) == (self.exchange is None):
            raise TopologyError("a message goes to a queue or to an exchange", hint='write queue="orders"')
        if self.queue is not None and self.routing_key:
            raise TopologyError("a queue has no routing key", hint='write exchange="..." instead of queue="..."')
        if KEY in (self.queue or self.exchange or ""):
            raise TopologyError(
                f"only a routing key can contain {KEY}", hint='write exchange="...", routing_key="{key}"'
            )
        for what, name in (("queue", self.queue), ("exchange", self.exchange)):
            if name is not None and not 1 <= len(name.encode()) <= LONGEST:
                raise TopologyError(f'the name of the {what} "{name}" does not have 1 to {LONGEST} bytes')

    def prepare(self, rows: Rows, types: Types) -> Prepared:
        """Prepare routing keys and bodies."""
        found = addressed(rows, self.queue or self.routing_key, with_key=self.with_key)
        return Prepared(
            found.key, found.value, {**longer_than(found.key, LONGEST, "the routing key"), **found.failures}
        )

    def open(self, opening: Opening) -> SinkWriter:
        from potok.sinks.messages.rabbitmq_writer import RabbitMqWriter  # imports the client

        return RabbitMqWriter(self, opening)

"""Write streams to message brokers and sockets, and metrics to StatsD."""

from __future__ import annotations

from potok.dsl.delivering import Delivering
from potok.duration import Duration, to_ms
from potok.sinks.guarantee import Guarantee, GuaranteeName
from potok.sinks.messages.rabbitmq import RabbitMqTarget


class MessageSinks(Delivering):
    """The methods that send each record as a message. Each ends a stream."""

    def to_rabbitmq(
        self,
        url: str,
        *,
        queue: str | None = None,
        exchange: str | None = None,
        routing_key: str = "",
        declare: bool = True,
        persistent: bool = True,
        with_key: bool = False,
        give_up_after: Duration | None = None,
        guarantee: GuaranteeName = Guarantee.AT_LEAST_ONCE,
        name: str | None = None,
    ) -> None:
        """Publish each record to RabbitMQ as JSON, and wait for the publisher confirms.

        >>> orders.to_rabbitmq("amqp://guest:guest@localhost/", queue="orders")
        >>> orders.to_rabbitmq(url, exchange="events", routing_key="orders.{key}")

        Each message has a `message_id`, which stays the same when it is published again: consumers recognise
        duplicates by it. Headers of records are headers of messages. A message that no queue takes becomes a dead
        letter.

        Args:
            url: `amqp://USER:PASSWORD@HOST:PORT/VHOST`, or `amqps://` for TLS.
            queue: The queue to publish to.
            exchange: The exchange to publish to instead; it has to exist.
            routing_key: The routing key; `{key}` stands for the key of the record, as text.
            declare: Declare the queue as durable; otherwise it has to exist.
            persistent: Messages survive a restart of the server.
            with_key: The body is `{"key": ..., "timestamp": ..., "value": ...}` instead of the value alone; required
                for null values.
            give_up_after: How long to retry while the server does not answer before the query stops; by default the
                setting `retry_for`.
            guarantee: `at_least_once` or `at_most_once`. With the latter, a message that may have arrived without a
                confirmation is not published again; its record becomes a dead letter.
            name: Names the step, from which the ids of messages are derived.
        """
        target = RabbitMqTarget(
            url, queue, exchange, routing_key, declare, persistent, _given_up(give_up_after), with_key
        )
        self._deliver(target, queue or exchange or "nowhere", guarantee, name)


def _given_up(after: Duration | None) -> int | None:
    return None if after is None else to_ms(after)

"""Write streams to message brokers and sockets, and metrics to StatsD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from potok.dsl.sinks.delivering import Delivering
from potok.duration import Duration, to_ms
from potok.sinks.guarantee import Guarantee, GuaranteeName
from potok.sinks.messages.mqtt import MqttTarget, MqttVersion
from potok.sinks.messages.rabbitmq import RabbitMqTarget
from potok.sinks.messages.zeromq import ZeroMqFrame, ZeroMqPattern, ZeroMqTarget
from potok.sinks.statsd import StatsdTarget, StatsdType


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

    def to_mqtt(
        self,
        url: str,
        topic: str,
        *,
        qos: Literal[0, 1] = 1,
        retain: bool = False,
        version: MqttVersion = "5",
        with_key: bool = False,
        give_up_after: Duration | None = None,
        guarantee: GuaranteeName = Guarantee.AT_LEAST_ONCE,
        name: str | None = None,
    ) -> None:
        """Publish each record to an MQTT broker as JSON, and wait for its acknowledgement.

        >>> readings.to_mqtt("mqtt://localhost", "sensors/{key}", retain=True)

        Each message has a user property `message-id`, which stays the same when it is published again: subscribers
        recognise duplicates by it. Headers of records are user properties too. A message that the broker refuses
        becomes a dead letter; with version 3.1.1, brokers cannot say so, and there are no user properties.

        Args:
            url: `mqtt://USER:PASSWORD@HOST:PORT`, or `mqtts://` for TLS.
            topic: The topic; `{key}` stands for the key of the record, as text.
            qos: 1, or 0 with `guarantee="at_most_once"`.
            retain: The broker keeps the last message of each topic; a null value deletes it.
            version: The version of the protocol.
            with_key: The body is `{"key": ..., "timestamp": ..., "value": ...}` instead of the value alone; required
                for null values without `retain`.
            give_up_after: How long to retry while the broker does not answer before the query stops; by default the
                setting `retry_for`.
            guarantee: `at_least_once` or `at_most_once`. With the latter, a message that may have arrived without an
                acknowledgement is not published again; its record becomes a dead letter.
            name: Names the step, from which the ids of messages are derived.
        """
        target = MqttTarget(url, topic, qos, retain, version, _given_up(give_up_after), with_key)
        self._deliver(target, topic or "nowhere", guarantee, name)

    def to_zeromq(
        self,
        endpoint: str,
        *,
        pattern: ZeroMqPattern = "push",
        bind: bool = False,
        frames: Sequence[ZeroMqFrame] = ("value",),
        high_water_mark: int = 10_000,
        with_key: bool = False,
        give_up_after: Duration | None = None,
        name: str | None = None,
    ) -> None:
        """Send each record over a ZeroMQ socket as JSON, at most once.

        >>> orders.to_zeromq("tcp://127.0.0.1:5555")
        >>> orders.to_zeromq("tcp://127.0.0.1:5556", pattern="pub", bind=True, frames=("key", "number", "value"))

        ZeroMQ has no acknowledgements: messages are handed to the socket after the commit, and those that its peers
        have not read are lost if a process dies. A PUB socket drops what its subscribers do not read in time. A frame
        `number` lets receivers count what is missing.

        Args:
            endpoint: `tcp://HOST:PORT` or `ipc://PATH`.
            pattern: `push` shares messages among PULL sockets, and waits for them; `pub` sends to SUB sockets that
                are connected.
            bind: Bind the endpoint instead of connecting to it.
            frames: The frames of a message: `key` as text, `sender`, which is new with each start of the query,
                `number`, counted from 1 for each sender, and `value`.
            high_water_mark: The most messages that wait in the socket for one peer.
            with_key: The value is `{"key": ..., "timestamp": ..., "value": ...}`; required for null values.
            give_up_after: How long a PUSH socket waits for a peer that reads, 1 minute by default; then the records of
                the batch that were not sent become dead letters.
            name: Names the step.
        """
        given_up = _given_up(give_up_after)
        target = ZeroMqTarget(endpoint, pattern, bind, tuple(frames), high_water_mark, given_up, with_key)
        self._deliver(target, endpoint.partition("://")[2] or "nowhere", Guarantee.AT_MOST_ONCE, name)

    def to_statsd(
        self,
        address: str,
        *,
        metric: str = "{key}",
        type: StatsdType = "c",
        max_datagram: int = 1_432,
        name: str | None = None,
    ) -> None:
        """Send each record as a StatsD metric over UDP, at most once.

        >>> orders.map_values(lambda v: 1).to_statsd("127.0.0.1:8125", metric="orders.{key}")

        The value is a number, or has the fields `value` and, if they differ, `type`, `rate` and `relative`, or `member`
        of a set, as in the topic of a `statsd` listener. Datagrams are sent after the commit and are not acknowledged;
        if nothing listens, they are lost, and their number is logged.

        Args:
            address: `HOST:PORT`.
            metric: The name; `{key}` stands for the key of the record, as text.
            type: `c` counter, `g` gauge, `ms` timer, `h` histogram, `C` meter or `s` set.
            max_datagram: The most bytes of a datagram, which has as many metrics as fit.
            name: Names the step.
        """
        target = StatsdTarget(address, metric, type, max_datagram)
        self._deliver(target, address, Guarantee.AT_MOST_ONCE, name)


def _given_up(after: Duration | None) -> int | None:
    return None if after is None else to_ms(after)

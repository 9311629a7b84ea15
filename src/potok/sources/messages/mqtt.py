"""Subscribe to topics of an MQTT broker."""

from __future__ import annotations

import logging
import ssl
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import unquote, urlsplit

from potok.duration import Duration, to_seconds
from potok.errors import TopologyError
from potok.records.log_record import LogRecord
from potok.redact import redact
from potok.retry_policy import Retry
from potok.sources.arrival import Done
from potok.sources.counters import DROPPED_NEWEST, STOPPED
from potok.sources.deduplication import Deduplication
from potok.sources.listener import Listener, ListenerContext, ListenerSpec, option
from potok.sources.messages.acknowledgements import Acknowledgements, Delivery
from potok.sources.messages.intake import Intake, Message
from potok.sources.messages.parts import check_part, part_of

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

_AT_ONCE = 500
_IDLE_S = 0.2
_BUSY_S = 0.005
_CONNECT_S = 10.0
_KEEPALIVE_S = 30
_STOP_S = 5.0
_MOST_EXPIRY = 0xFFFF_FFFF
_PROPERTIES = ("topic",)

_logger = logging.getLogger("potok.sources")

Ids = list[int]
"""The packet identifiers of messages with QoS 1 that were handed over together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqtt(ListenerSpec):
    """Messages of an MQTT broker, one record each; the key is the topic. The session is persistent, and a message with
    QoS 1 is acknowledged once its record is in the log, so the broker delivers it again after a crash; with `id`, a
    redelivered message is not appended again. A message that was published with QoS 0 can be lost. QoS 2 is received as
    QoS 1, because its handshake would end before the record is in the log. When the buffer is full, `block` withholds
    acknowledgements, and the broker stops after `receive_maximum` messages.
    """

    kind: ClassVar[str] = "mqtt"
    extra: ClassVar[str | None] = "mqtt"

    url: str = option("mqtt://USER:PASSWORD@HOST:PORT, or mqtts:// for TLS.", repr=False)
    subscribe: tuple[str, ...] = option("The topics to subscribe to, such as `sensors/+/temperature` or `shop/#`.")
    client_id: str = option("Names the session that the broker keeps; no other client may use it.")
    version: Literal["5", "3.1.1"] = option("The version of the protocol.", default="5")
    qos: int = option("0 or 1.", default=1)
    receive_maximum: int = option("Maximum number of unacknowledged messages (MQTT 5).", default=1_000)
    session_expiry: Duration | None = option(
        "How long the broker keeps the session while the gateway is disconnected (MQTT 5); by default, forever.",
        default=None,
    )
    key: str | None = option(
        "What becomes the key of a record: `topic`, `header:NAME` (a user property) or `body:FIELD.FIELD`.",
        default="topic",
    )
    id: str | None = option("What identifies a message: `header:NAME` or `body:FIELD.FIELD`.", default=None)
    remember_ids: Duration = option("How long ids are remembered.", default="1 hour")
    max_ids: int = option("Maximum number of remembered ids.", default=1_000_000)

    def check(self) -> None:
        ListenerSpec.check(self)
        found = urlsplit(self.url)
        if found.scheme not in ("mqtt", "mqtts") or not found.hostname:
            raise TopologyError("the url is not one of MQTT", hint='write url = "mqtt://localhost:1883"')
        if not self.subscribe or not all(self.subscribe):
            raise TopologyError("there is no topic to subscribe to", hint='write subscribe = ["sensors/#"]')
        if not self.client_id:
            raise TopologyError("a persistent session needs a name", hint='write client_id = "potok-sensors"')
        if self.qos not in (0, 1):
            raise TopologyError(f"qos = {self.qos} is not possible", hint="write qos = 1, which also receives QoS 2")
        if self.version not in ("5", "3.1.1"):
            raise TopologyError(f'there is no version "{self.version}"', hint='use "5" or "3.1.1"')
        if not 1 <= self.receive_maximum <= 65_535:
            text = f"receive_maximum = {self.receive_maximum} is out of range"
            raise TopologyError(text, hint="write a number from 1 to 65535")
        self.overload.allow(("block", "drop_newest", "drop_oldest"), "MQTT cannot reject a message")
        if self.qos == 0:
            self.overload.allow(("drop_newest", "drop_oldest"), "QoS 0 has no acknowledgements to withhold")
        check_part("key", self.key, _PROPERTIES)
        check_part("id", self.id, ())

    def open(self, context: ListenerContext) -> Listener:
        return MqttListener(self, context)


class _Connection:
    """A connected client, what it has received, and what is not acknowledged."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.incoming: list[Message] = []
        self.ids: Ids = []
        self.unsettled: Acknowledgements[Ids] = Acknowledgements()
        self.settled: deque[tuple[Delivery[Ids], str | None]] = deque()
        """What other threads have settled; the thread of the client acknowledges it."""
        self.problem: str | None = None
        self.accepted = False


class MqttListener(Listener):
    """A thread with one client, connected again whenever its connection ends."""

    def __init__(self, spec: Mqtt, context: ListenerContext) -> None:
        self._spec, self._context = spec, context
        self._intake = Intake(context, Deduplication.of(spec, context.broker, "message"))
        self._problem: str | None = "not connected yet"
        self._connections = 0
        self._stopping, self._closing = threading.Event(), threading.Event()
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name=f"potok-mqtt-{spec.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Hand over nothing more. The connection stays open for the acknowledgements of what is buffered."""
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
        """Keep a connection open. The broker delivers again what an ended one did not acknowledge."""
        retry = Retry(0, self._stopping)
        while not self._stopping.is_set():
            before = self._connections
            try:
                self._receive()
            except (OSError, ValueError) as error:
                self._report(str(error) or type(error).__name__)
            if self._connections > before:
                retry = Retry(0, self._stopping)
            retry.wait()
        self._idle.set()

    def _report(self, problem: str) -> None:
        text = redact(problem)
        if self._problem != text and not self._stopping.is_set():
            _logger.warning('listener "%s": the MQTT broker is not available: %s', self._spec.name, text)
        self._problem = text

    def _receive(self) -> None:
        """Connect, and receive until the connection ends; once the listener stops, until it is closed."""
        from paho.mqtt.client import error_string
        from paho.mqtt.enums import MQTTErrorCode

        client = self._client()
        running = _Connection(client)
        client.on_connect = lambda *found: self._connected(running, found[3])
        client.on_subscribe = lambda *found: self._subscribed(running, found[3])
        client.on_message = lambda _, __, message: self._arrived(running, message)
        self._connect(client)
        try:
            while not (self._stopping.is_set() and self._closing.is_set()):
                waiting = running.incoming or running.unsettled
                code = client.loop(_BUSY_S if waiting else _IDLE_S)
                while not code and running.incoming and len(running.incoming) < _AT_ONCE:
                    before = len(running.incoming)
                    code = client.loop(0)
                    if len(running.incoming) == before:
                        break
                if self._stopping.is_set():
                    running.incoming.clear()
                    self._idle.set()
                self._hand_over(running)
                self._acknowledge(running)
                if code:
                    self._report(running.problem or error_string(MQTTErrorCode(code)))
                    return
                if running.problem:
                    self._report(running.problem)
                    return
        finally:
            self._acknowledge(running)
            client.disconnect()

    def _client(self) -> Client:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

        five = self._spec.version == "5"
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=self._spec.client_id,
            clean_session=None if five else False,
            protocol=MQTTProtocolVersion.MQTTv5 if five else MQTTProtocolVersion.MQTTv311,
            manual_ack=True,
            reconnect_on_failure=False,
        )
        client.connect_timeout = _CONNECT_S
        found = urlsplit(self._spec.url)
        if found.username is not None:
            client.username_pw_set(unquote(found.username), unquote(found.password or ""))
        if found.scheme == "mqtts":
            client.tls_set_context(ssl.create_default_context())
        return client

    def _connect(self, client: Client) -> None:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        found = urlsplit(self._spec.url)
        port = found.port or (8883 if found.scheme == "mqtts" else 1883)
        assert found.hostname is not None
        if self._spec.version != "5":
            client.connect(found.hostname, port, _KEEPALIVE_S)
            return
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        expiry = self._spec.session_expiry
        properties.SessionExpiryInterval = _MOST_EXPIRY if expiry is None else int(to_seconds(expiry))
        properties.ReceiveMaximum = self._spec.receive_maximum
        client.connect(found.hostname, port, _KEEPALIVE_S, clean_start=False, properties=properties)

    def _connected(self, running: _Connection, reason: Any) -> None:
        if reason.is_failure:
            running.problem = f"the connection was refused: {reason}"
            return
        topics = [(topic, self._spec.qos) for topic in self._spec.subscribe]
        if self._spec.version == "5":
            from paho.mqtt.subscribeoptions import SubscribeOptions

            # A retained message is delivered with a new subscription, not with each connection.
            kept = SubscribeOptions(qos=self._spec.qos, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
            running.client.subscribe([(topic, kept) for topic in self._spec.subscribe])
        else:
            running.client.subscribe(topics)

    def _subscribed(self, running: _Connection, reasons: Any) -> None:
        refused = [topic for topic, each in zip(self._spec.subscribe, reasons, strict=False) if each.is_failure]
        if refused:
            running.problem = f'the subscription to "{refused[0]}" was refused'
            return
        self._connections += 1
        self._problem = None

    def _arrived(self, running: _Connection, message: MQTTMessage) -> None:
        """Take a message. What was published with QoS 0 cannot wait while the buffer is full."""
        found = self._message(message)
        if message.qos:
            running.incoming.append(found)
            running.ids.append(message.mid)
        elif not self._intake.offer([found]):
            self._context.lose([found.record.value or b""], DROPPED_NEWEST, "QoS 0, and the buffer is full")

    def _hand_over(self, running: _Connection) -> None:
        if not running.incoming:
            return
        delivery = running.unsettled.add(running.ids)
        if self._intake.offer(running.incoming, self._done(running, delivery)):
            running.incoming, running.ids = [], []
        else:
            running.unsettled.take_back()

    def _done(self, running: _Connection, delivery: Delivery[Ids]) -> Done:
        def done(problem: str | None) -> None:
            if problem != STOPPED:
                running.settled.append((delivery, problem))

        return done

    def _acknowledge(self, running: _Connection) -> None:
        while running.settled:
            for each in running.unsettled.settle(*running.settled.popleft()):
                for identifier in each.tags:
                    running.client.ack(identifier, 1)

    def _message(self, message: MQTTMessage) -> Message:
        properties = getattr(message.properties, "UserProperty", []) if message.properties is not None else []
        named, topic = dict(properties), {"topic": message.topic}
        body = bytes(message.payload)
        key = None if self._spec.key is None else part_of(self._spec.key, body, named, topic)
        identifier = None if self._spec.id is None else part_of(self._spec.id, body, named)
        headers = tuple((name, value.encode()) for name, value in properties)
        return Message(LogRecord(None if key is None else key.encode(), body, headers=headers), identifier)

"""Publish the records of a batch to an MQTT broker, and wait until it acknowledges them."""

from __future__ import annotations

import ssl
import struct
import time
import uuid
from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from paho.mqtt import MQTTException
from paho.mqtt.client import Client, error_string
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from potok.redact import redact
from potok.sinks.messages.confirmed import CONFIRM_S, CONNECT_S, WINDOW, ConfirmedWriter, Round
from potok.sinks.messages.message_ids import message_ids
from potok.sinks.sink_spec import Batch, Opening, Rows
from potok.sinks.urls import clear_url, remember_url

if TYPE_CHECKING:
    from potok.sinks.messages.mqtt import MqttTarget

MESSAGE_ID = "message-id"

_JSON = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
_JSON.ContentType = "application/json"
"""Copied for each message, because it is slow to make."""

_LOOK_S = 0.05
_REFUSED = 0x80
_NOT_AUTHORIZED, _QUOTA = 0x87, 0x97
_LASTING = frozenset({0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C})
"""Why a connection is refused for good: version, identifier, password, rights, ban, authentication method."""


@dataclass(frozen=True, slots=True)
class Message:
    """A record as it is published."""

    topic: str
    body: bytes
    properties: Properties | None

    @property
    def size(self) -> int:
        """The bytes of the packet with QoS 1."""
        properties = b"" if self.properties is None else self.properties.pack()  # type: ignore[no-untyped-call]
        rest = 2 + len(self.topic.encode()) + 2 + len(properties) + len(self.body)
        return 1 + max(1, (rest.bit_length() + 6) // 7) + rest


class _Connection:
    """A connected client, and what the broker has said."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.accepted = self.refused_for_good = False
        self.problem = ""
        self.window, self.most_bytes = WINDOW, 0
        self.answers: deque[tuple[int, int, str]] = deque()
        """The identifiers of acknowledged packets, each with the reason."""

    def connected(self, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.problem = f"the connection was refused: {reason}"
            self.refused_for_good = reason.value in _LASTING
            return
        self.window = min(WINDOW, getattr(properties, "ReceiveMaximum", WINDOW))
        self.most_bytes = getattr(properties, "MaximumPacketSize", 0)
        self.accepted = True

    def disconnected(self, reason: Any) -> None:
        self.problem = self.problem or f"the connection ended: {reason}"


class MqttWriter(ConfirmedWriter[Message]):
    """Publishes some messages at a time. One that the broker refuses becomes a dead letter."""

    def __init__(self, target: MqttTarget, opening: Opening) -> None:
        super().__init__(target.label, target.give_up_after_ms, opening)
        self._target = target
        remember_url(target.url)
        self._connection: _Connection | None = None
        self.connect()

    def publish(self, messages: Sequence[Message], rows: list[int]) -> Round:
        done = Round(rows)
        waiting: dict[int, int] = {}
        try:
            running = self._opened(done)
            if running is not None:
                self._publish(running, messages, done, waiting)
        except (OSError, ValueError) as error:
            done.cause = redact(str(error) or type(error).__name__)
        if done.cause:
            done.uncertain = list(waiting.values())
            self._disconnect()
        return done

    def _publish(self, running: _Connection, messages: Sequence[Message], done: Round, waiting: dict[int, int]) -> None:
        following = deque(done.left)
        left = dict.fromkeys(done.left)
        end = time.monotonic() + CONFIRM_S
        while left and not done.cause:
            while following and len(waiting) < running.window:
                row = following.popleft()
                refused = self._send(running, messages[row], row, waiting)
                if refused:
                    done.failures[row] = refused
                    del left[row]
            code = running.client.loop(_LOOK_S)
            if running.answers:
                end = time.monotonic() + CONFIRM_S
            while running.answers:
                identifier, reason, text = running.answers.popleft()
                row = waiting.pop(identifier)
                self._settle(row, reason, text, left, done)
            if code and not done.cause:
                done.cause = running.problem or error_string(MQTTErrorCode(code))
            elif time.monotonic() > end and not done.cause:
                done.cause = f"no answer within {CONFIRM_S:g} seconds"
        done.left = list(left)

    def _send(self, running: _Connection, message: Message, row: int, waiting: dict[int, int]) -> str:
        """Send one message; return why it can never be sent."""
        if running.most_bytes and message.size > running.most_bytes:
            return f"the message is larger than {running.most_bytes} bytes, the most that the broker takes"
        try:
            sent = running.client.publish(
                message.topic, message.body, self._target.qos, self._target.retain, message.properties
            )
        except (ValueError, struct.error, MQTTException) as error:
            return f"it cannot be published: {error}"
        waiting[sent.mid] = row
        return ""

    def _settle(self, row: int, reason: int, text: str, left: dict[int, None], done: Round) -> None:
        if reason < _REFUSED:
            del left[row]
        elif reason == _QUOTA:
            done.cause = f"the broker does not take messages at present: {text}"
        elif reason == _NOT_AUTHORIZED and not self._follows_key:
            done.cause, done.fatal = f"the broker refuses messages: {text}", True
        else:
            done.failures[row] = f"the broker refuses it: {text}"
            del left[row]

    @property
    def _follows_key(self) -> bool:
        return "{key}" in self._target.topic

    def _opened(self, done: Round) -> _Connection | None:
        """Return a connection that is open, or None and the cause."""
        running = self._connection
        if running is not None and not running.client.loop(0):
            return running
        self._disconnect()
        running = self._connection = _Connection(self._client())
        client = running.client
        client.on_connect = lambda *found: running.connected(found[3], found[4])
        client.on_disconnect = lambda *found: running.disconnected(found[3])
        client.on_publish = lambda _, __, mid, reason, ___: running.answers.append((mid, reason.value, str(reason)))
        found = urlsplit(str(clear_url(self._target.url)))
        assert found.hostname is not None
        # Without keep-alive: between two batches nobody would send its packets.
        client.connect(found.hostname, found.port or (8883 if found.scheme == "mqtts" else 1883), 0)
        end = time.monotonic() + CONNECT_S
        while not running.accepted:
            code = client.loop(_LOOK_S)
            if running.problem or code or time.monotonic() > end:
                done.cause = running.problem or (error_string(MQTTErrorCode(code)) if code else "no answer")
                done.fatal = running.refused_for_good
                return None
        return running

    def _client(self) -> Client:
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"potok-{uuid.uuid4().hex[:16]}",
            protocol=MQTTProtocolVersion.MQTTv5 if self._target.version == "5" else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
        )
        client.connect_timeout = CONNECT_S
        client.max_inflight_messages_set(WINDOW)
        found = urlsplit(str(clear_url(self._target.url)))
        if found.username is not None:
            client.username_pw_set(unquote(found.username), unquote(found.password or ""))
        if found.scheme == "mqtts":
            client.tls_set_context(ssl.create_default_context())
        return client

    def messages(self, batch: Batch, rows: Rows) -> list[Message]:
        bodies = [body or b"" for body in rows.values]
        topics = rows.keys
        if self._target.version != "5":
            return [Message(topic, body, None) for topic, body in zip(topics, bodies, strict=True)]
        headers = repeat(None) if rows.headers is None else rows.headers.to_pylist()
        parts = zip(topics, bodies, message_ids(self._opening, batch, bodies), headers, strict=False)
        return [Message(topic, body, _properties(name, found)) for topic, body, name, found in parts]

    def _disconnect(self) -> None:
        running, self._connection = self._connection, None
        if running is not None:
            running.client.disconnect()
            running.client.loop(0)

    def close(self) -> None:
        self._disconnect()


def _properties(identifier: str, headers: Sequence[dict[str, Any]] | None) -> Properties:
    """Return the id and the headers as user properties; these are text, so other bytes are replaced."""
    made = copy(_JSON)
    named = [(each["name"], (each["value"] or b"").decode(errors="replace")) for each in headers or ()]
    made.UserProperty = [(MESSAGE_ID, identifier), *named]
    return made

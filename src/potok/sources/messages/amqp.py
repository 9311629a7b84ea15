"""Consume from RabbitMQ over one connection: AMQP 0-9-1, with deliveries read in bulk.

pamqp encodes and decodes everything but deliveries, which are most of what arrives: their three frames are read here.
An object and a task for each frame, as clients of asyncio have them, cost three times as much as all else.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import threading
import time
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

CONNECT_S = 10.0

_PROTOCOL = b"AMQP\0\0\x09\x01"
_HEAD, _CONTENT, _LONG, _SHORT = struct.Struct(">BHI"), struct.Struct(">HHQH"), struct.Struct(">Q"), struct.Struct(">H")
_LENGTH = struct.Struct(">I")
_METHOD, _HEADER, _BODY = 1, 2, 3
_KINDS = (_METHOD, _HEADER, _BODY, 8)
_DELIVER = b"\0\x3c\0\x3c"
_FRAME_END = 0xCE
_HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"
_HEARTBEAT_S = 20
_CHUNK = 1 << 20

# The properties of a message, from the highest bit of their flags; `T` is a table, `s` a text, `o` a byte, `t` a time.
_PROPERTIES = (
    *(("content_type", "s"), ("content_encoding", "s"), ("headers", "T"), ("delivery_mode", "o"), ("priority", "o")),
    *(("correlation_id", "s"), ("reply_to", "s"), ("expiration", "s"), ("message_id", "s"), ("timestamp", "t")),
    *(("message_type", "s"), ("user_id", "s"), ("app_id", "s"), ("cluster_id", "s")),
)

M = TypeVar("M")


class AmqpClosed(OSError):
    """The server closed the connection or the channel, or the connection is lost."""


class BadProperties(ValueError):
    """The properties of a message are malformed, or nested too deeply."""


class Delivered(NamedTuple):
    """A message of a queue."""

    tag: int
    routing_key: str
    content: bytes
    """The flags of its properties, and these."""
    body: bytes

    def properties(self) -> dict[str, Any]:
        """Return the properties that it has. Raises `BadProperties`."""
        try:
            return self._properties()
        except (ValueError, LookupError, OverflowError, RecursionError, struct.error) as error:
            raise BadProperties(f"its headers cannot be read: {error}") from error

    def _properties(self) -> dict[str, Any]:
        content = self.content
        (flags,) = _SHORT.unpack_from(content)
        found: dict[str, Any] = {}
        at = 2
        for bit, (name, kind) in enumerate(_PROPERTIES):
            if not flags & (1 << (15 - bit)):
                continue
            if kind == "s":
                end = at + 1 + content[at]
                found[name] = content[at + 1 : end].decode(errors="replace")
                at = end
            elif kind == "T":
                from pamqp.decode import field_table

                (length,) = _LENGTH.unpack_from(content, at)
                found[name] = field_table(content[at : at + 4 + length])[1]
                at += 4 + length
            else:
                at += 1 if kind == "o" else 8
        return found


class AmqpConnection:
    """A connection with one channel. One thread receives; any thread may acknowledge."""

    def __init__(self, url: str) -> None:
        """Connect and open the channel. Raises `OSError`."""
        found = urlsplit(url)
        secure = found.scheme == "amqps"
        self._socket = socket.create_connection(
            (found.hostname or "localhost", found.port or (5671 if secure else 5672)), timeout=CONNECT_S
        )
        self._sending = threading.Lock()
        self._buffer = bytearray()
        self._delivered: list[Delivered] = []
        self._tag, self._routing_key, self._content, self._left = 0, "", b"", 0
        self._parts: list[bytes] = []
        self._replies: list[Any] = []
        self.cancelled = False
        """Whether the server has ended the consumer, for example because the queue was deleted."""
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if secure:
                context = ssl.create_default_context()
                self._socket = context.wrap_socket(self._socket, server_hostname=found.hostname)
            self._handshake(
                unquote(found.username or "guest"), unquote(found.password or "guest"), unquote(found.path[1:]) or "/"
            )
        except BaseException:
            self._socket.close()
            raise
        self._heard_at = self._said_at = time.monotonic()

    def _handshake(self, user: str, password: str, vhost: str) -> None:
        from pamqp.commands import Channel, Connection

        self._socket.sendall(_PROTOCOL)
        self._reply(Connection.Start)
        capabilities = {"consumer_cancel_notify": True, "authentication_failure_close": True}
        properties: dict[str, Any] = {"product": "potok", "capabilities": capabilities}
        self._send(Connection.StartOk(properties, "PLAIN", f"\0{user}\0{password}", "en_US"), 0)
        tune = self._reply(Connection.Tune)
        self._heartbeat_s = min(tune.heartbeat or _HEARTBEAT_S, _HEARTBEAT_S)
        self._send(Connection.TuneOk(1, tune.frame_max, self._heartbeat_s), 0)
        self._send(Connection.Open(vhost), 0)
        self._reply(Connection.OpenOk)
        self.call(Channel.Open(), Channel.OpenOk)

    def call(self, method: Any, reply: type[M]) -> M:
        """Send a method on the channel, and wait for its reply."""
        self._send(method, 1)
        return self._reply(reply)

    def consume(self, queue: str, prefetch: int) -> str:
        """Start to consume a queue, and return the tag of the consumer."""
        from pamqp.commands import Basic

        self.call(Basic.Qos(0, prefetch, False), Basic.QosOk)
        return str(self.call(Basic.Consume(queue=queue), Basic.ConsumeOk).consumer_tag)

    def cancel(self, consumer: str) -> None:
        """Receive nothing more; acknowledgements are still possible."""
        from pamqp.commands import Basic

        self._send(Basic.Cancel(consumer, True), 1)

    def acknowledge(self, tag: int) -> None:
        """Acknowledge this message and all before it."""
        from pamqp.commands import Basic

        self._send(Basic.Ack(tag, True), 1)

    def refuse(self, tag: int) -> None:
        """Refuse this message and all before it that are not acknowledged: the server drops or dead-letters them."""
        from pamqp.commands import Basic

        self._send(Basic.Nack(tag, True, False), 1)

    def receive(self, timeout_s: float) -> list[Delivered]:
        """Return the messages that have arrived, waiting for the first. Raises `AmqpClosed`."""
        self._read(timeout_s)
        found, self._delivered = self._delivered, []
        return found

    def keep_alive(self) -> None:
        """Send a heartbeat if it is time, and raise if the server has sent nothing for too long."""
        now = time.monotonic()
        if now - self._said_at > self._heartbeat_s / 2:
            self._write(_HEARTBEAT)
        if now - self._heard_at > 2 * self._heartbeat_s:
            raise AmqpClosed("the server has sent no heartbeat")

    def close(self) -> None:
        from pamqp.commands import Connection

        try:
            self._socket.settimeout(1.0)
            self._send(Connection.Close(200, "", 0, 0), 0)
            self._reply(Connection.CloseOk)
        except OSError:
            pass
        finally:
            self._socket.close()

    def _reply(self, kind: type[M]) -> M:
        end = time.monotonic() + CONNECT_S
        while True:
            while self._replies:
                found = self._replies.pop(0)
                if isinstance(found, kind):
                    return found
            if time.monotonic() > end:
                raise AmqpClosed(f"no answer within {CONNECT_S:g} seconds")
            self._read(0.5)

    def _send(self, method: Any, channel: int) -> None:
        from pamqp import frame

        self._write(frame.marshal(method, channel))

    def _write(self, data: bytes) -> None:
        with self._sending:
            self._socket.sendall(data)
            self._said_at = time.monotonic()

    def _read(self, timeout_s: float) -> None:
        secure = self._socket if isinstance(self._socket, ssl.SSLSocket) else None
        if not (secure and secure.pending()) and not select.select([self._socket], [], [], timeout_s)[0]:
            return
        # TLS cannot be read and written at a time.
        with self._sending if secure else nullcontext():
            data = self._socket.recv(_CHUNK)
        if not data:
            raise AmqpClosed("the server closed the connection")
        self._heard_at = time.monotonic()
        self._buffer += data
        self._parse()

    def _parse(self) -> None:
        """Take the whole frames from the buffer."""
        data = bytes(self._buffer)
        at, size = 0, len(data)
        while at + 8 <= size:
            kind, channel, length = _HEAD.unpack_from(data, at)
            if kind not in _KINDS:
                raise AmqpClosed("the server does not speak AMQP 0-9-1")
            end = at + 7 + length
            if end >= size:
                break
            if data[end] != _FRAME_END:
                raise AmqpClosed("the server sent a frame that does not end where it says")
            if kind == _BODY:
                self._add(data[at + 7 : end])
            elif kind == _HEADER:
                self._left = _CONTENT.unpack_from(data, at + 7)[2]
                self._content = data[at + 19 : end]
                self._parts = []
                if not self._left:
                    self._add(b"")
            elif kind == _METHOD and data[at + 7 : at + 11] == _DELIVER:
                self._begin(data, at + 11)
            elif kind == _METHOD:
                self._method(data[at : end + 1], channel)
            at = end + 1
        del self._buffer[:at]

    def _begin(self, data: bytes, at: int) -> None:
        """Read `Basic.Deliver`: consumer tag, delivery tag, redelivered, exchange, routing key."""
        at += 1 + data[at]
        (self._tag,) = _LONG.unpack_from(data, at)
        at += 9
        at += 1 + data[at]
        self._routing_key = data[at + 1 : at + 1 + data[at]].decode(errors="replace")

    def _add(self, part: bytes) -> None:
        """Add a part of the body, and complete the message with its last one."""
        self._left -= len(part)
        if self._left:
            self._parts.append(part)
            return
        body = b"".join([*self._parts, part]) if self._parts else part
        self._delivered.append(Delivered(self._tag, self._routing_key, self._content, body))

    def _method(self, data: bytes, channel: int) -> None:
        from pamqp import frame
        from pamqp.commands import Basic, Channel, Connection

        method: Any = frame.unmarshal(data)[2]
        if isinstance(method, Connection.Close | Channel.Close):
            reply = Connection.CloseOk() if isinstance(method, Connection.Close) else Channel.CloseOk()
            self._send(reply, channel)
            raise AmqpClosed(f"{method.reply_text}")
        if isinstance(method, Basic.Cancel):
            self.cancelled = True
        self._replies.append(method)

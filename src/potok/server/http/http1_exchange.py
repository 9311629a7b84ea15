"""One request over HTTP/1.1 and its response, as seen by an ASGI application."""

from __future__ import annotations

import asyncio
import http
import logging
from typing import TYPE_CHECKING, Any

from starlette.types import Message

if TYPE_CHECKING:
    from potok.server.http.http1 import Http1Protocol

log = logging.getLogger("potok.server.http.http1")

UNREAD_BYTES = 64 << 10
"""Reading pauses while this many bytes of a body are unread by the application."""

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in http.HTTPStatus}


class Exchange:
    """`send` writes the head of a response together with the first part of its body; `receive` resumes reading."""

    __slots__ = (
        "_bodiless",
        "_body",
        "_continues",
        "_ended",
        "_event",
        "_head",
        "_is_chunked",
        "_protocol",
        "_scope",
        "_started",
        "_unsent",
        "gone",
        "is_complete",
        "keep_alive",
    )

    def __init__(self, protocol: Http1Protocol, scope: dict[str, Any], *, keep_alive: bool, continues: bool) -> None:
        self._protocol, self._scope, self.keep_alive, self._continues = protocol, scope, keep_alive, continues
        self._event, self._body, self._ended = asyncio.Event(), bytearray(), False
        self._started = self.is_complete = self.gone = False
        self._is_chunked = self._bodiless = False
        self._head, self._unsent = b"", 0

    async def run(self, app: Any) -> None:
        try:
            await app(self._scope, self.receive, self.send)
        except Exception:
            log.exception("the application failed at %s %s", self._scope["method"], self._scope["path"])
        if self.is_complete or self.gone:
            return
        if self._started:
            self._flush_head()
            self._protocol.end()
        else:
            self.keep_alive = False
            plain = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"21")]
            await self.send({"type": "http.response.start", "status": 500, "headers": plain})
            await self.send({"type": "http.response.body", "body": b"Internal Server Error"})

    def more(self, data: bytes) -> None:
        """Receive a part of the body."""
        if not self.is_complete:
            self._body += data
            self._event.set()
            if len(self._body) > UNREAD_BYTES:
                self._protocol.pause_reading()

    def ended(self) -> None:
        """Complete the request."""
        self._ended = True
        self._event.set()

    def leave(self) -> None:
        """Handle a disconnect."""
        self.gone = True
        self._event.set()

    async def receive(self) -> Message:
        if self._continues and not (self._started or self.gone):
            self._protocol.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._continues = False
        if not (self.gone or self.is_complete):
            self._protocol.resume_reading()
            await self._event.wait()
            self._event.clear()
        if self.gone or self.is_complete:
            self._event.set()
            return {"type": "http.disconnect"}
        body = bytes(self._body)
        self._body.clear()
        return {"type": "http.request", "body": body, "more_body": not self._ended}

    async def send(self, message: Message) -> None:
        if not self._protocol.writable.is_set():
            await self._protocol.writable.wait()
        if self.gone:
            return
        if self.is_complete:
            raise RuntimeError(f"{message['type']} was sent after the response was complete")
        if message["type"] == "http.response.start" and not self._started:
            self._start(message["status"], message.get("headers", ()))
        elif message["type"] == "http.response.body" and self._started:
            self._send_body(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"{message['type']} is not expected here")

    def _start(self, status: int, given: Any) -> None:
        self._started = True
        self._bodiless = self._scope["method"] == "HEAD" or status in (204, 304) or status < 200
        length: int | None = None
        lines = [_STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status]
        for name, value in self._protocol.state.default_headers:
            lines.append(b"%b: %b\r\n" % (name, value))
        for name, value in given:
            lower = name.lower()
            if lower == b"content-length":
                length = int(value)
            elif lower == b"transfer-encoding":
                continue
            elif lower == b"connection" and value.lower() == b"close":
                self.keep_alive = False
                continue
            lines.append(b"%b: %b\r\n" % (name, value))
        self._unsent = length or 0
        if length is None and not self._bodiless:
            self._is_chunked = self._scope["http_version"] == "1.1"
            if self._is_chunked:
                lines.append(b"transfer-encoding: chunked\r\n")
            else:
                self.keep_alive = False
        if not self.keep_alive:
            lines.append(b"connection: close\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or b"\0" in head:
            self._started = False
            raise RuntimeError("a header of the response contains a line break or a NUL")
        # Sent with the data right after it, without waiting for the first event of a stream.
        self._head = head + b"\r\n"
        self._protocol.loop.call_soon(self._flush_head)

    def _flush_head(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._protocol.write(head)

    def _send_body(self, body: bytes, *, more: bool) -> None:
        head, self._head = self._head, b""
        if self._bodiless:
            self._protocol.write(head)
        elif self._is_chunked:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            self._protocol.write(head + chunk if more else head + chunk + b"0\r\n\r\n")
        else:
            if self.keep_alive or self._unsent:
                self._unsent -= len(body)
                if self._unsent < 0 or (self._unsent and not more):
                    self.keep_alive = False
                    self._protocol.write(head)
                    raise RuntimeError("the length of the body of a response differs from its content-length")
            self._protocol.write(head + body)
        if not more:
            self.is_complete = True
            self._body.clear()
            self._event.set()
            self._protocol.answered(is_whole=self._ended)

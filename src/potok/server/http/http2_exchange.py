"""One request over HTTP/2 and its response, as seen by an ASGI application."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from starlette.types import Message

from potok.server.access.disconnects import STOP
from potok.server.http import connections
from potok.sql.budget import Stop

if TYPE_CHECKING:
    from potok.server.http.http2 import Http2Protocol

log = logging.getLogger(__name__)

_NOT_SENT = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
"""Headers of HTTP/1.1 that an application may send and HTTP/2 forbids."""


class Exchange:
    """`send` waits for the windows of the client and of the transport; `receive` opens ours as it reads."""

    def __init__(self, protocol: Http2Protocol, stream: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._protocol, self._stream = protocol, stream
        self.may_send = asyncio.Event()
        self._something = asyncio.Event()
        self._body, self._unaccepted, self._ended = bytearray(), 0, False
        self._gone = self._started = self._complete = False
        self._given: list[tuple[bytes, bytes]] = []
        self._stop = Stop()
        self._scope = {**_scope(protocol, headers), STOP: self._stop}
        self._continues = (b"expect", b"100-continue") in self._scope["headers"]

    async def run(self, app: Any) -> None:
        try:
            await app(self._scope, self.receive, self.send)
        except Exception:
            log.exception("the application failed at %s %s", self._scope["method"], self._scope["path"])
            if not self._started:
                await self._fail()
        if not self._complete:
            self._reset(ErrorCodes.INTERNAL_ERROR)

    async def _fail(self) -> None:
        plain = [(b"content-type", b"text/plain; charset=utf-8")]
        await self.send({"type": "http.response.start", "status": 500, "headers": plain})
        await self.send({"type": "http.response.body", "body": b"Internal Server Error"})

    @property
    def takes_body(self) -> bool:
        return not (self._gone or self._complete)

    def more(self, data: bytes, size: int) -> None:
        """Receive a part of the body, and its size in our windows."""
        self._body += data
        self._unaccepted += size
        self._something.set()

    def ended(self) -> None:
        """Complete the request."""
        self._ended = True
        self._something.set()

    def gone(self) -> None:
        """Handle a client that has cancelled the request."""
        self._gone = True
        self._stop.ask()
        self._something.set()
        self.may_send.set()

    async def receive(self) -> Message:
        if self._continues and not (self._gone or self._started):
            self._protocol.connection.send_headers(self._stream, [(b":status", b"100")])
            self._protocol.flush()
        self._continues = False
        all_sent = self._something.is_set() or self._body or self._unaccepted
        if not (self._gone or self._complete) and not all_sent:
            await self._something.wait()
        self._something.clear()
        if self._gone or self._complete:
            self._something.set()
            return {"type": "http.disconnect"}
        body, self._body = bytes(self._body), bytearray()
        accepted, self._unaccepted = self._unaccepted, 0
        self._protocol.accept(self._stream, accepted)
        self._protocol.flush()
        return {"type": "http.request", "body": body, "more_body": not self._ended}

    async def send(self, message: Message) -> None:
        if self._gone:
            return
        if self._complete:
            raise RuntimeError(f"{message['type']} was sent after the response was complete")
        if message["type"] == "http.response.start":
            self._start(message)
        elif message["type"] == "http.response.body":
            await self._send_body(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"{message['type']} is not expected here")

    def _start(self, message: Message) -> None:
        given = [*self._protocol.server_state.default_headers, *message.get("headers", ())]
        headers = [(name.lower(), value) for name, value in given if name.lower() not in _NOT_SENT]
        self._started = True
        self._bodiless = self._scope["method"] == "HEAD" or message["status"] in (204, 304)
        self._given = [(b":status", b"%d" % message["status"]), *headers]
        # Sent with the data right after it, without waiting for the first event of a stream.
        self._protocol.loop.call_soon(self._flush_head)

    def _flush_head(self) -> None:
        if self._given and not self._gone and self._send_head(ends=False):
            self._protocol.flush()

    def _send_head(self, *, ends: bool) -> bool:
        headers, self._given = self._given, []
        return self._try(lambda: self._protocol.connection.send_headers(self._stream, headers, end_stream=ends))

    async def _send_body(self, body: bytes, *, more: bool) -> None:
        if not self._started:
            raise RuntimeError("the body of a response was sent before its head")
        body = b"" if self._bodiless else body
        if self._given:
            ends = not more and not body
            if not self._send_head(ends=ends):
                return
            if ends:
                self._end()
                return
        view, ends_at = memoryview(body), self._protocol.loop.time() + connections.STALL_S
        while len(view):
            room = await self._room(ends_at)
            if not room:
                return
            part, view = view[:room], view[room:]
            ends = not more and not len(view)
            if not self._try(lambda: self._protocol.connection.send_data(self._stream, bytes(part), end_stream=ends)):  # noqa: B023
                return
            self._protocol.flush()
        if not more:
            if not body and not self._try(lambda: self._protocol.connection.end_stream(self._stream)):
                return
            self._end()
        self._protocol.flush()

    async def _room(self, ends_at: float) -> int:
        """Wait until data may be sent, and return how much; 0 if the client has disconnected or stalled."""
        connection, protocol = self._protocol.connection, self._protocol
        try:
            async with asyncio.timeout_at(ends_at):
                while not self._gone:
                    await protocol.writable.wait()
                    if self._gone or protocol.transport.is_closing():
                        break
                    self.may_send.clear()
                    window = min(connection.local_flow_control_window(self._stream), connection.max_outbound_frame_size)
                    if window > 0:
                        return window
                    protocol.flush()
                    await self.may_send.wait()
        except TimeoutError:
            log.info("dropping a client that accepted too little for %g seconds", connections.STALL_S)
            self._reset(ErrorCodes.CANCEL)
        except ProtocolError:
            self.gone()
        return 0

    def _try(self, action: Any) -> bool:
        """Return whether the data could be sent: the client may have closed the stream."""
        try:
            action()
        except ProtocolError:
            self.gone()
            return False
        return True

    def _end(self) -> None:
        self._complete = True
        self._protocol.answered()
        if not self._ended:
            # The rest of the body is discarded.
            self._try(lambda: self._protocol.connection.reset_stream(self._stream, ErrorCodes.NO_ERROR))
        self._protocol.accept(self._stream, self._unaccepted)
        self._body, self._unaccepted = bytearray(), 0
        self._something.set()
        self._protocol.flush()

    def _reset(self, code: ErrorCodes) -> None:
        if not self._gone:
            self._try(lambda: self._protocol.connection.reset_stream(self._stream, code))
            self._protocol.flush()
        self.gone()


def _scope(protocol: Http2Protocol, given: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    pseudo = {name: value for name, value in given if name.startswith(b":")}
    authority = pseudo.get(b":authority")
    headers = [(name, value) for name, value in given if not name.startswith(b":") and name != b"cookie"]
    cookies = [value for name, value in given if name == b"cookie"]
    if cookies:
        headers.append((b"cookie", b"; ".join(cookies)))
    if authority is not None:
        headers = [(b"host", authority), *(header for header in headers if header[0] != b"host")]
    raw_path, _, query = pseudo.get(b":path", b"/").partition(b"?")
    root = protocol.config.root_path
    return {
        "type": "http",
        "asgi": {"version": protocol.config.asgi_version, "spec_version": "2.3"},
        "http_version": "2",
        "server": protocol.server,
        "client": protocol.client,
        "scheme": connections.scheme_of(protocol.transport),
        "method": pseudo.get(b":method", b"GET").decode("latin-1"),
        "root_path": root,
        "path": root + unquote(raw_path.decode("latin-1")),
        "raw_path": root.encode() + raw_path,
        "query_string": query.partition(b"#")[0],
        "headers": headers,
        "state": protocol.app_state.copy(),
    }

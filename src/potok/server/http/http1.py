"""HTTP/1.1: one connection, and the requests on it. `httptools` parses; limits, timeouts and order are here."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, cast
from urllib.parse import unquote

import httptools
import uvicorn

from potok.server.access.disconnects import STOP
from potok.server.errors import HeadTooLarge
from potok.server.http import connections
from potok.server.http.connections import HEAD_BYTES, ServerState, addresses, scheme_of
from potok.server.http.http1_exchange import Exchange
from potok.server.http.web_socket import WebSocketProtocol
from potok.server.problems import busy, problem_response
from potok.sql.budget import Stop

QUEUED = 16
"""Maximum number of pipelined requests on a connection; a client that sends more is disconnected."""


class Http1Protocol(asyncio.Protocol):
    """One connection. Endless headers and unread responses hold neither the connection nor memory."""

    def __init__(self, config: uvicorn.Config, state: ServerState, app_state: dict[str, Any]) -> None:
        self.config, self.state, self._app_state = config, state, app_state
        self.loop = asyncio.get_running_loop()
        self.writable = asyncio.Event()
        self.writable.set()
        self._parser: Any = httptools.HttpRequestParser(self)
        # Requests after one with `Connection: close` are never answered.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._stop = Stop()
        self._answering: Exchange | None = None
        self._parsing: Exchange | None = None
        self._queue: deque[tuple[Exchange, Any]] = deque()
        self._url, self._headers = b"", list[tuple[bytes, bytes]]()
        self._in_head, self._head_bytes, self._counted = False, 0, 0
        self._is_paused = self._ending = self._upgrades = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._server, self._client = addresses(transport)
        self.state.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.state.connections.discard(self)
        for timer in (self._head_timer, self._idle_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        self._stop.ask()
        self._queue.clear()
        for exchange in (self._answering, self._parsing):
            if exchange is not None and not exchange.is_complete:
                exchange.leave()
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        # While headers arrive, limit what the parser gets: it buffers an unfinished line.
        while self._in_head and data:
            room = HEAD_BYTES + 1 - self._head_bytes
            piece, data = data[:room], data[room:]
            if not self._feed(piece):
                return
            if self._in_head:
                self._head_bytes += len(piece)
                if self._head_bytes > HEAD_BYTES:
                    self._refuse()
                    return
        if data:
            self._feed(data)

    def _feed(self, data: bytes) -> bool:
        """Return whether this connection still reads requests afterwards."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            if self._upgrades:
                self._upgrade()
                return False
        except httptools.HttpParserError:
            self._refuse()
        return not self._transport.is_closing()

    def _refuse(self) -> None:
        """Reject a request that is invalid or too large, unless another response is being sent."""
        if self._transport.is_closing():
            return
        if self._answering is None:
            self._transport.write(_refusal(max(self._counted, self._head_bytes)))
        self.end()

    def on_message_begin(self) -> None:
        self._head_timer = self.loop.call_later(connections.HEAD_S, self._transport.close)
        self._in_head, self._head_bytes, self._counted = True, 0, 0
        self._url, self._headers, self._upgrades = b"", [], False

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        if self._in_head:
            self._headers.append((name.lower(), value))

    def _count(self, size: int) -> None:
        self._counted += size
        if self._counted > HEAD_BYTES:
            raise HeadTooLarge(HEAD_BYTES)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        if len(self._queue) >= QUEUED:
            self._transport.abort()
            raise ConnectionAbortedError
        parser, version = self._parser, self._parser.get_http_version()
        upgrades = parser.should_upgrade()
        if upgrades and _asks_for_web_socket(self._headers):
            if self._answering is not None:
                raise ConnectionAbortedError
            self._upgrades, self._parsing = True, None
            return
        url = httptools.parse_url(self._url)
        path = url.path.decode("ascii")
        root = self.config.root_path
        scope = {
            "type": "http",
            "asgi": {"version": self.config.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self._server,
            "client": self._client,
            "scheme": scheme_of(self._transport),
            "method": parser.get_method().decode("ascii"),
            "root_path": root,
            "path": root + (unquote(path) if "%" in path else path),
            "raw_path": root.encode() + url.path,
            "query_string": url.query or b"",
            "headers": self._headers,
            "state": self._app_state.copy(),
            STOP: self._stop,
        }
        keep_alive = version != "1.0" and parser.should_keep_alive() and not upgrades and not self._ending
        continues = any(name == b"expect" and value.lower() == b"100-continue" for name, value in self._headers)
        self._parsing = Exchange(self, scope, keep_alive=keep_alive, continues=continues)
        limit = self.config.limit_concurrency
        is_crowded = limit is not None and max(len(self.state.connections), len(self.state.tasks)) >= limit
        app = busy if is_crowded else self.config.loaded_app
        if self._answering is None:
            self._begin(self._parsing, app)
        else:
            self._queue.append((self._parsing, app))

    def on_body(self, body: bytes) -> None:
        if self._parsing is not None:
            self._parsing.more(body)

    def on_message_complete(self) -> None:
        if self._parsing is not None:
            self._parsing.ended()

    def _begin(self, exchange: Exchange, app: Any) -> None:
        self._answering = exchange
        task = self.loop.create_task(exchange.run(app))
        self.state.tasks.add(task)
        task.add_done_callback(self.state.tasks.discard)

    def _upgrade(self) -> None:
        self.state.connections.discard(self)
        lines = [b"%b %b HTTP/1.1\r\n" % (self._parser.get_method(), self._url)]
        lines += [b"%b: %b\r\n" % header for header in self._headers]
        protocol = WebSocketProtocol(self.config, self.state, self._app_state)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(b"".join(lines) + b"\r\n")

    def write(self, data: bytes) -> None:
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def answered(self, *, is_whole: bool) -> None:
        """Handle the end of a response; `is_whole` if its request was read completely."""
        self.state.total_requests += 1
        exchange, self._answering = self._answering, None
        if self._transport.is_closing():
            return
        if exchange is None or not exchange.keep_alive or self._ending:
            self.end()
            return
        self.resume_reading()
        if self._queue:
            self._begin(*self._queue.popleft())
        elif is_whole:
            self._idle_timer = self.loop.call_later(self.config.timeout_keep_alive, self.end)
        else:
            # The rest of the body is discarded; the wait for a client that keeps sending is bounded.
            self._idle_timer = self.loop.call_later(connections.STALL_S, self.end)

    def end(self) -> None:
        """Close the connection when its client has received everything."""
        if not self._transport.is_closing():
            connections.close(self._transport, self.loop)

    def shutdown(self) -> None:
        """Accept no more requests, and close after the current response; called when the server stops."""
        self._ending = True
        if self._answering is None:
            self.end()
        else:
            self._answering.keep_alive = False

    def pause_reading(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.writable.clear()
        self._stall_timer = self.loop.call_later(connections.STALL_S, self._transport.abort)

    def resume_writing(self) -> None:
        self.writable.set()
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None


def _asks_for_web_socket(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(name == b"upgrade" and value.lower() == b"websocket" for name, value in headers)


def _refusal(size: int) -> bytes:
    """Return the response to an unreadable request with headers of this size."""
    if size <= HEAD_BYTES:
        return b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    body = bytes(problem_response(HeadTooLarge(HEAD_BYTES)).body)
    head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\n"
    return head + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body

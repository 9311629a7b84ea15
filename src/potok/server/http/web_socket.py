"""WebSockets whose clients only listen: their messages show that they are connected, and are discarded.

`websockets` keeps the state of the protocol and does no I/O; limits and timeouts are here.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast
from urllib.parse import unquote

import uvicorn
from starlette.types import Message
from websockets.exceptions import InvalidState
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol

from potok.server.access.disconnects import STOP
from potok.server.http import connections
from potok.server.http.connections import ServerState, addresses, is_encrypted
from potok.sql.budget import Stop

log = logging.getLogger(__name__)
_quiet = logging.getLogger("potok.server.websockets")
_quiet.setLevel(logging.CRITICAL)  # errors of clients are not logged

PIECE = 8 << 10
"""Bytes processed before other tasks get to run; they may be a thousand frames."""

FRAMES, FRAMES_S = 1_000, 60.0
"""Maximum number of frames per number of seconds; a client that sends more is disconnected."""

LONGEST = 64 << 10
"""Maximum size of a message."""

PING_S = 20.0
"""Interval of pings, and time to respond to one."""

CLOSE_S = 10.0
"""Time for the client to close the connection as well."""


class WebSocketProtocol(asyncio.Protocol):
    """One connection, and the ASGI application that sends on it.

    Stops reading while the client does not receive, because replies to its pings would accumulate; disconnects a client
    that stalls or sends too many frames.
    """

    def __init__(self, config: uvicorn.Config, state: ServerState, app_state: dict[str, Any]) -> None:
        self._config, self._state, self._app_state = config, state, app_state
        self._loop = asyncio.get_running_loop()
        deflate = ServerPerMessageDeflateFactory(
            server_max_window_bits=12, client_max_window_bits=12, compress_settings={"memLevel": 5}
        )
        self._protocol = ServerProtocol(extensions=[deflate], max_size=LONGEST, logger=_quiet)
        self._writable, self._left = asyncio.Event(), asyncio.Event()
        self._writable.set()
        self._stop, self._unread = Stop(), b""
        self._response: Response | None = None
        self._said_connect = self._is_open = self._closes = self._is_lost = False
        self._frames, self._since, self._ponged = 0, 0.0, True
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._server, self._client = addresses(transport)
        self._state.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._state.connections.discard(self)
        for timer in self._timers.values():
            timer.cancel()
        self._unread, self._is_lost = b"", True
        self._stop.ask()
        self._left.set()
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        waiting, self._unread = bool(self._unread), self._unread + data
        if not waiting:
            self._read()

    def _read(self) -> None:
        """Process one piece of the received data; the rest after other tasks have run."""
        # The opening request is bounded, and read in one piece.
        size = PIECE if self._response is not None else len(self._unread)
        piece, self._unread = self._unread[:size], self._unread[size:]
        if self._transport.is_closing():
            self._unread = b""
            return
        self._protocol.receive_data(piece)
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._connect(event)
            else:
                self._count()
        self._flush()
        if self._protocol.close_expected() and not self._closes:
            # The client closed the connection, or violated the protocol.
            self._left.set()
            self._stop.ask()
            self._end()
        elif self._protocol.close_rcvd is not None:
            self._end()
        if self._transport.is_closing():
            self._unread = b""
        elif self._unread:
            self._transport.pause_reading()
            self._loop.call_soon(self._read)
        elif self._writable.is_set():
            self._transport.resume_reading()

    def _connect(self, request: Request) -> None:
        self._response = self._protocol.accept(request)
        if self._response.status_code != 101:
            self._protocol.send_response(self._response)
            self._flush()
            self._end()
            return
        raw_path, _, query = request.path.partition("?")
        root = self._config.root_path
        scope = {
            "type": "websocket",
            "asgi": {"version": self._config.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "wss" if is_encrypted(self._transport) else "ws",
            "server": self._server,
            "client": self._client,
            "root_path": root,
            "path": root + unquote(raw_path),
            "raw_path": (root + raw_path).encode("ascii"),
            "query_string": query.encode("ascii"),
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1", "surrogateescape"))
                for name, value in request.headers.raw_items()
            ],
            "subprotocols": [],
            "state": self._app_state.copy(),
            STOP: self._stop,
        }
        task = self._loop.create_task(self._run(scope))
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    async def _run(self, scope: dict[str, Any]) -> None:
        try:
            await self._config.loaded_app(scope, self._receive, self._send)
        except Exception:
            if not self._is_lost:
                log.exception("the application failed at the WebSocket %s", scope["path"])
        if not self._is_open and not self._is_lost and not self._closes:
            self._reject(500)
        elif not self._closes:
            self._end()

    async def _receive(self) -> Message:
        if not self._said_connect:
            self._said_connect = True
            return {"type": "websocket.connect"}
        await self._left.wait()
        code = self._protocol.close_code if self._is_open else None
        return {"type": "websocket.disconnect", "code": code or 1006}

    async def _send(self, message: Message) -> None:
        """Wait until the client has received enough: a message is held until it is sent."""
        await self._writable.wait()
        if self._is_lost or self._closes:
            if message["type"] == "websocket.close":
                return
            raise OSError("the client has left")
        if not self._is_open:
            self._open(message)
            return
        try:
            if message["type"] == "websocket.send":
                text = message.get("text")
                if text is not None:
                    self._protocol.send_text(text.encode())
                else:
                    self._protocol.send_binary(message["bytes"])
            elif message["type"] == "websocket.close":
                self._closes = True
                self._left.set()
                self._protocol.send_close(message.get("code", 1000), message.get("reason") or "")
                self._after("close", CLOSE_S, self._end)
            else:
                raise RuntimeError(f"{message['type']} is not expected here")
        except InvalidState:  # the client is closing the connection
            raise OSError("the client has left") from None
        self._flush()
        if self._transport.get_write_buffer_size() > PIECE:
            await asyncio.sleep(0)
            await self._writable.wait()

    def _open(self, message: Message) -> None:
        """Respond to the opening request."""
        if message["type"] == "websocket.close":
            self._reject(403)
            return
        if message["type"] != "websocket.accept" or self._response is None:
            raise RuntimeError(f"{message['type']} is not expected here")
        del self._response.headers["Date"]
        for name, value in [*self._state.default_headers, *message.get("headers", ())]:
            self._response.headers[name.decode("latin-1")] = value.decode("latin-1")
        self._is_open = True
        self._protocol.send_response(self._response)
        self._flush()
        self._after("ping", PING_S, self._ping)

    def _reject(self, status: int) -> None:
        self._closes = True
        self._left.set()
        self._protocol.send_response(self._protocol.reject(status, ""))
        self._flush()
        self._end()

    def _ping(self) -> None:
        if self._closes or self._transport.is_closing():
            return
        if not self._ponged:
            self._transport.abort()
            return
        self._ponged = False
        self._protocol.send_ping(b"")
        self._flush()
        self._after("ping", PING_S, self._ping)

    def _count(self) -> None:
        """Record that the client is alive, and discard its messages."""
        self._ponged = True
        now = self._loop.time()
        if now - self._since > FRAMES_S:
            self._frames, self._since = 0, now
        self._frames += 1
        if self._frames > FRAMES and not self._transport.is_closing():
            self._transport.abort()

    def _flush(self) -> None:
        data = b"".join(self._protocol.data_to_send())
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def _end(self) -> None:
        if not self._transport.is_closing():
            connections.close(self._transport, self._loop)

    def shutdown(self) -> None:
        """Close the connection; called when the server stops."""
        if self._is_open and not self._closes:
            self._closes = True
            self._protocol.send_close(1012)
            self._flush()
        self._left.set()
        self._end()

    def pause_writing(self) -> None:
        self._writable.clear()
        self._transport.pause_reading()
        self._after("stall", connections.STALL_S, self._transport.abort)

    def resume_writing(self) -> None:
        self._writable.set()
        stalled = self._timers.pop("stall", None)
        if stalled is not None:
            stalled.cancel()
        if not self._unread:
            self._transport.resume_reading()

    def _after(self, name: str, seconds: float, action: Any) -> None:
        self._timers[name] = self._loop.call_later(seconds, action)

"""HTTP/2 over plain TCP with prior knowledge: one connection, and the requests on it.

`h2` keeps the state of the protocol. Its caller, this module, respects the client's windows, bounds what it reads, and
does not let frames without a request keep a connection open.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import uvicorn
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingReceived,
    PriorityUpdated,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError

from potok.server.errors import HeadTooLarge
from potok.server.http import connections
from potok.server.http.connections import HEAD_BYTES, ServerState, addresses
from potok.server.http.http2_exchange import Exchange
from potok.server.problems import busy, problem_response

log = logging.getLogger(__name__)

STREAMS = 100
"""Maximum number of concurrent requests on one connection, including cancelled ones that still run."""

PIECE = 8 << 10
"""Bytes processed before other tasks get to run; they may be a thousand frames."""

IDLE_FRAMES = 1_000
"""Maximum number of frames without a request and of cancelled requests between two responses."""


class _Connection(H2Connection):
    """Reads headers that are larger than allowed, so that they can be rejected with a status."""

    DEFAULT_MAX_HEADER_LIST_SIZE = 4 * HEAD_BYTES


class Http2Protocol(asyncio.Protocol):
    """One connection. It is closed after the keep-alive time without a request, whatever other frames arrive."""

    def __init__(self, config: uvicorn.Config, state: ServerState, app_state: dict[str, Any]) -> None:
        self.config, self.server_state, self.app_state = config, state, app_state
        self.loop = asyncio.get_running_loop()
        self.connection = _Connection(H2Configuration(client_side=False, header_encoding=None))
        self.writable = asyncio.Event()
        self.writable.set()
        self._exchanges: dict[int, Exchange] = {}
        self._running = 0
        self._idle_frames = 0
        self._unread = bytearray()
        self._reading = self._ending = False
        self._idle: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.server, self.client = addresses(transport)
        self.server_state.connections.add(self)
        self.connection.initiate_connection()
        self.flush()
        self._wait_for_requests()

    def connection_lost(self, exc: Exception | None) -> None:
        self.server_state.connections.discard(self)
        self._ending = True
        self._unread.clear()
        for exchange in list(self._exchanges.values()):
            exchange.gone()
        self.writable.set()
        for timer in (self._idle, self._stalled):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if not self._reading:
            self._read()

    def _read(self) -> None:
        """Process one piece of the received data; the rest after other tasks have run."""
        piece = bytes(self._unread[:PIECE])
        del self._unread[:PIECE]
        if self.transport.is_closing():
            self._unread.clear()
            return
        try:
            for event in self.connection.receive_data(piece):
                self._take(event)
        except ProtocolError as error:
            log.info("a client violated the HTTP/2 protocol: %s", error)
            self._end(None)
            return
        if self._idle_frames > IDLE_FRAMES:
            self._end(ErrorCodes.ENHANCE_YOUR_CALM)
            return
        self.flush()
        self._reading = bool(self._unread)
        if self._reading:
            self.transport.pause_reading()
            self.loop.call_soon(self._read)
        elif self.writable.is_set():
            self.transport.resume_reading()

    def _take(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._request(event)
            case DataReceived():
                self._body(event)
            case StreamEnded(stream_id=int() as stream):
                if stream in self._exchanges:
                    self._exchanges[stream].ended()
            case StreamReset(stream_id=int() as stream):
                self._idle_frames += 1
                if stream in self._exchanges:
                    self._exchanges[stream].gone()
            case WindowUpdated():
                self.window_opened(event.stream_id or 0)
            case RemoteSettingsChanged():
                self._idle_frames += 1
                self.window_opened(0)
            case PingReceived() | PriorityUpdated():
                self._idle_frames += 1
            case ConnectionTerminated():
                self.shutdown()

    def _request(self, event: RequestReceived) -> None:
        stream, headers = event.stream_id, event.headers
        if self._running >= STREAMS or self._ending:
            self.connection.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
            return
        state, limit = self.server_state, self.config.limit_concurrency
        app: Any = self.config.loaded_app
        if sum(len(name) + len(value) + 32 for name, value in headers) > HEAD_BYTES:
            app = problem_response(HeadTooLarge(HEAD_BYTES))
        elif limit is not None and max(len(state.connections), len(state.tasks)) >= limit:
            app = busy
        exchange = Exchange(self, stream, headers)
        self._exchanges[stream] = exchange
        self._running += 1
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        task = self.loop.create_task(exchange.run(app))
        state.tasks.add(task)
        task.add_done_callback(state.tasks.discard)
        task.add_done_callback(lambda _: self._finished(stream))

    def _body(self, event: DataReceived) -> None:
        stream, size = event.stream_id, event.flow_controlled_length
        exchange = self._exchanges.get(stream)
        if not event.data:
            self._idle_frames += 1
        if exchange is None or not exchange.takes_body:
            self.accept(stream, size)
        else:
            exchange.more(event.data or b"", size)

    def accept(self, stream: int, size: int) -> None:
        """Open the window by the number of bytes that the application has read."""
        if size and not self.transport.is_closing():
            self.connection.acknowledge_received_data(size, stream)

    def window_opened(self, stream: int) -> None:
        for number, exchange in self._exchanges.items():
            if stream in (0, number):
                exchange.may_send.set()

    def flush(self) -> None:
        data = self.connection.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def _finished(self, stream: int) -> None:
        self._exchanges.pop(stream, None)
        self.server_state.total_requests += 1
        self._running -= 1
        if self._running:
            return
        if self._ending:
            self._end(ErrorCodes.NO_ERROR)
        else:
            self._wait_for_requests()

    def answered(self) -> None:
        """Handle the end of a response, and reset the count of frames without a request."""
        self._idle_frames = 0

    def _wait_for_requests(self) -> None:
        if not self.transport.is_closing():
            self._idle = self.loop.call_later(self.config.timeout_keep_alive, self._end, ErrorCodes.NO_ERROR)

    def _end(self, code: ErrorCodes | None) -> None:
        """Close the connection; a code is sent first."""
        if self.transport.is_closing():
            return
        if code is not None:
            self.connection.close_connection(code)
        self.flush()
        connections.close(self.transport, self.loop)

    def shutdown(self) -> None:
        """Accept no more requests, and close after the last response; called when the server stops."""
        self._ending = True
        if not self._running:
            self._end(ErrorCodes.NO_ERROR)

    def pause_writing(self) -> None:
        """Stop reading while the client does not receive: each frame might need a reply."""
        self.writable.clear()
        self.transport.pause_reading()
        self._stalled = self.loop.call_later(connections.STALL_S, self.transport.abort)

    def resume_writing(self) -> None:
        self.writable.set()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        if not self._reading:
            self.transport.resume_reading()

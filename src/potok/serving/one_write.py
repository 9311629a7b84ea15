"""HTTP/1.1 whose answers leave in one piece: head and body apart would be two calls of the system, and wake the client
for half an answer."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from potok.serving.errors import HeadTooLarge
from potok.serving.leaving import STOP
from potok.serving.problems import busy, problem_response
from potok.sql.budget import Stop

_log = logging.getLogger("potok.serving.http1")
_log.setLevel(logging.ERROR)  # the sender gets the answer, and the log is not filled

HEAD_BYTES = 64 << 10
"""Of the first line and the headers of a request; of HTTP/2, as it counts them."""

STALL_S = 60.0
"""A client that takes less than a piece of an answer in so long is cut off: the answer is held for it meanwhile."""

QUEUED = 16
"""Requests that may wait on a connection for earlier answers; a client that sends more is disconnected."""

HEAD_S = 10.0
"""Whoever begins a request has so long to come to the end of its head."""


def close(transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
    """Close a connection when its client has taken what was written, and do not wait for that without end."""
    transport.close()
    if transport.get_write_buffer_size():
        loop.call_later(STALL_S, transport.abort)


class OneWriteProtocol(HttpToolsProtocol):
    """Lets the head of each answer wait for what comes right behind it, and nobody keep a connection, or memory, by a
    head that does not end."""

    _patience: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _inside_head = False
    _begun = 0
    """Bytes that came after the first of an unfinished head: the parser keeps them until a line is whole."""
    _read = 0
    """Bytes of the lines of this head that are whole, and of the trailers behind its body."""
    _answering: RequestResponseCycle | None = None
    """The request whose answer is under way: `cycle` may be one that waits behind it."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger = _log
        self._whole_app, self._most, self.limit_concurrency = self.app, self.limit_concurrency, None
        self._stop = Stop()

    def data_received(self, data: bytes) -> None:
        while self._inside_head and data:
            piece, data = data[: HEAD_BYTES + 1 - self._begun], data[HEAD_BYTES + 1 - self._begun :]
            super().data_received(piece)
            if self.transport.is_closing() or self.transport.get_protocol() is not self:
                return
            if self._inside_head:
                self._begun += len(piece)
                if self._begun > HEAD_BYTES:
                    self.send_400_response("")
                    return
        if data:
            super().data_received(data)

    def on_message_begin(self) -> None:
        self._patience = self.loop.call_later(HEAD_S, self.transport.close)
        self._inside_head, self._begun, self._read = True, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > HEAD_BYTES:
            raise HeadTooLarge(HEAD_BYTES)

    def send_400_response(self, msg: str) -> None:
        """Called for what cannot be parsed, which what is too large is to the parser as well."""
        if self.transport.is_closing():
            return
        if max(self._read, self._begun) <= HEAD_BYTES:
            super().send_400_response(msg)
            return
        body = problem_response(HeadTooLarge(HEAD_BYTES)).body
        head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\n"
        self.transport.write(head + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + bytes(body))
        close(self.transport, self.loop)

    def pause_writing(self) -> None:
        self._unwatch()
        self._stalled = self.loop.call_later(STALL_S, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unwatch()
        super().resume_writing()

    def _unwatch(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        self._head_is_there()
        self._stop.ask()
        self.pipeline.clear()
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def _head_is_there(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def on_headers_complete(self) -> None:
        self._inside_head = False
        self._head_is_there()
        if len(self.pipeline) >= QUEUED:
            self.transport.abort()
            raise ConnectionAbortedError
        self.scope[STOP] = self._stop  # type: ignore[literal-required]
        crowd = max(len(self.connections), len(self.tasks))
        self.app = busy if self._most is not None and crowd >= self._most else self._whole_app
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            if self.pipeline:
                # The few that may wait are read, so that a client is seen to leave.
                self.flow.resume_reading()
            self.cycle.transport = cast("asyncio.Transport", _HeadFirst(self.transport, self.loop))

    def timeout_keep_alive_handler(self) -> None:
        if not self.transport.is_closing():
            close(self.transport, self.loop)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)


class _HeadFirst:
    """The transport as one answer sees it. What is written first waits for the second, but no longer than until the
    event loop turns to others: the head of a stream must not wait for its first event."""

    __slots__ = ("_begun", "_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._head, self._begun = b"", False

    def write(self, data: bytes) -> None:
        if self._begun:
            head, self._head = self._head, b""
            self._transport.write(head + data if head else data)
        else:
            self._begun, self._head = True, data
            self._loop.call_soon(self._flush)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._flush()
        close(self._transport, self._loop)

    def _flush(self) -> None:
        if self._head:
            self.write(b"")

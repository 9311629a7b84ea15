"""WebSockets whose clients only listen: what they send is read so that they are seen to be there, and not kept."""

from __future__ import annotations

import asyncio

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from potok.serving import one_write
from potok.serving.leaving import STOP
from potok.sql.budget import Stop

PIECE = 8 << 10
"""So much is read at a time before others have their turn: it may be a thousand frames."""

FRAMES, FRAMES_S = 1_000, 60.0
"""A client may send so many frames in so many seconds; a client that sends more is disconnected."""

LONGEST = 64 << 10
"""Bytes of one message."""


class ListenerProtocol(WebSocketsSansIOProtocol):
    """Reads no more while the client takes nothing, as answers to its pings would pile up; and cuts off a client that
    takes nothing for long, or that sends frame after frame."""

    _stalled: asyncio.TimerHandle | None = None
    _unread = b""
    _frames, _since = 0, 0.0

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            self._stop = Stop()
            self.scope[STOP] = self._stop  # type: ignore[literal-required]

    async def send(self, message: ASGISendEvent) -> None:
        """Return when the client has taken enough: a message is as large as it is, and held until it is sent."""
        await super().send(message)
        if self.transport.get_write_buffer_size() > PIECE:
            await asyncio.sleep(0)
            await self.writable.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        self._unread = b""
        if self.handshake_initiated and self.response.status_code == 101:
            self._stop.ask()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        waiting, self._unread = bool(self._unread), self._unread + data
        if not waiting:
            self._read()

    def _read(self) -> None:
        """One piece of what has come; the rest when others have had their turn."""
        piece, self._unread = self._unread[:PIECE], self._unread[PIECE:]
        if self.transport.is_closing():
            self._unread = b""
            return
        super().data_received(piece)
        if self._unread and not self.transport.is_closing():
            self.transport.pause_reading()
            self.loop.call_soon(self._read)
        elif self.writable.is_set() and not self.transport.is_closing():
            self.transport.resume_reading()

    def handle_cont(self, event: Frame) -> None:
        """Nobody reads messages: their parts are not kept."""
        self._count()

    handle_text = handle_bytes = handle_cont

    def handle_ping(self) -> None:
        self._count()
        super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        self._count()
        super().handle_pong(event)

    def _count(self) -> None:
        now = self.loop.time()
        if now - self._since > FRAMES_S:
            self._frames, self._since = 0, now
        self._frames += 1
        if self._frames > FRAMES and not self.transport.is_closing():
            self.transport.abort()

    def pause_writing(self) -> None:
        self.transport.pause_reading()
        self._unwatch()
        self._stalled = self.loop.call_later(one_write.STALL_S, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unwatch()
        super().resume_writing()
        if not self._unread:
            self.transport.resume_reading()

    def _unwatch(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

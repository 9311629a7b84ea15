"""HTTP/1.1 whose answers leave in one piece: head and body apart would be two calls of the system, and wake the client
for half an answer."""

from __future__ import annotations

import asyncio
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_S = 10.0
"""Whoever begins a request has so long to come to the end of its head."""


class OneWriteProtocol(HttpToolsProtocol):
    """Lets the head of each answer wait for what comes right behind it, and nobody keep a connection by half a head."""

    _patience: asyncio.TimerHandle | None = None

    def on_message_begin(self) -> None:
        self._patience = self.loop.call_later(HEAD_S, self.transport.close)
        super().on_message_begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        super().connection_lost(exc)

    def _head_is_there(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def on_headers_complete(self) -> None:
        self._head_is_there()
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self.cycle.transport = cast("asyncio.Transport", _HeadFirst(self.transport, self.loop))


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
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            self.write(b"")

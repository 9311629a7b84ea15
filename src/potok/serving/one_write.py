"""HTTP/1.1 whose answers leave in one piece: head and body apart would be two calls of the system, and wake the client
for half an answer."""

from __future__ import annotations

import asyncio
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from potok.serving.errors import HeadTooLarge
from potok.serving.problems import problem_response

HEAD_BYTES = 64 << 10
"""Of the first line and the headers of a request; of HTTP/2, as it counts them."""

STALL_S = 300.0
"""A client that takes nothing of an answer for so long is cut off: the answer is held for it meanwhile."""

HEAD_S = 10.0
"""Whoever begins a request has so long to come to the end of its head."""


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
        if max(self._read, self._begun) <= HEAD_BYTES:
            super().send_400_response(msg)
            return
        body = problem_response(HeadTooLarge(HEAD_BYTES)).body
        head = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\n"
        self.transport.write(head + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + bytes(body))
        self.transport.close()

    def pause_writing(self) -> None:
        self._watch(self.transport.get_write_buffer_size())
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unwatch()
        super().resume_writing()

    def _watch(self, unsent: int) -> None:
        self._unwatch()
        self._stalled = self.loop.call_later(STALL_S, self._cut_off_unless_less_than, unsent)

    def _cut_off_unless_less_than(self, unsent: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left < unsent:
            self._watch(left)
        else:
            self.transport.abort()

    def _unwatch(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        self._head_is_there()
        super().connection_lost(exc)

    def _head_is_there(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def on_headers_complete(self) -> None:
        self._inside_head = False
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

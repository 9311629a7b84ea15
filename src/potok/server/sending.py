"""Send responses in pieces, and count them while they are held."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from starlette.types import Message, Receive, Scope, Send

from potok.errors import PotokError
from potok.server.access.held_bytes import Connection, Holding
from potok.server.problems import refusal_of

PIECE = 64 << 10
"""Size of a piece. Responses up to this size are not counted: transports buffer as much of each."""


class Sending:
    """Sends one response, or an error if the limit of held bytes is reached.

    The next piece is sent when the client has received enough of the previous ones: `send` of both protocols waits for
    that.
    """

    __slots__ = ("_head", "_is_refused", "_receive", "_scope", "_send", "holding")

    def __init__(self, holding: Holding, scope: Scope, receive: Receive, send: Send) -> None:
        self.holding, self._scope, self._receive, self._send = holding, scope, receive, send
        self._head: Message | None = None
        self._is_refused = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if _is_large(message):
                # The body follows, and may exceed the limit.
                self._head = message
                return
        elif self._is_refused:
            return
        elif self._head is not None or len(message.get("body", b"")) > PIECE:
            await self._send_body(message)
            return
        await self._send(message)

    async def _send_body(self, message: Message) -> None:
        body = message.get("body", b"")
        head, self._head = self._head, None
        if head is not None:
            try:
                self._hold(body)
            except PotokError as error:
                self._is_refused = True
                await refusal_of(error, self._scope)(self._scope, self._receive, self._send)
                return
            await self._send(head)
        for piece, is_last in in_pieces(body):
            more = message.get("more_body", False) or not is_last
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})
            if not is_last:
                # Only then does a transport report that its buffer is full; and other tasks get to run.
                await asyncio.sleep(0)
            self.holding.give_back(len(piece))

    def _hold(self, body: bytes) -> None:
        """Count what was not counted while the body was encoded."""
        if len(body) > PIECE:
            self.holding.take(max(len(body) - self.holding.size, 0))


def connection_of(scope: Scope) -> Connection:
    client = scope.get("client")
    return tuple(client) if client else None


def in_pieces(body: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the pieces of a body, each with whether it is the last; an empty body has one empty piece."""
    if len(body) <= PIECE:
        yield body, True
        return
    view = memoryview(body)
    for start in range(0, len(view), PIECE):
        yield bytes(view[start : start + PIECE]), start + PIECE >= len(view)


def _is_large(message: Message) -> bool:
    for name, value in message.get("headers", ()):
        if name == b"content-length":
            return len(value) > 4 and int(value) > PIECE
    return False

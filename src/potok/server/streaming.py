"""Endless responses, ended when the client disconnects or stops reading."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.types import Message, Receive, Scope, Send

from potok.server.sending import in_pieces

log = logging.getLogger(__name__)


LINGER_S = 300.0
"""Time for a dropped client to receive the reason. Nothing else is held for the client meanwhile."""


class Streamed:
    """A response whose pieces come from an iterator.

    A client that accepts nothing for `stall_seconds` gets `dropped` as its last piece. `on_end` is always called at the
    end, possibly twice.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        media_type: str,
        stall_seconds: float,
        on_end: Callable[[], object],
        dropped: bytes,
    ) -> None:
        self._pieces, self._media_type = pieces, media_type
        self._stall_seconds, self._on_end, self._dropped = stall_seconds, on_end, dropped

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [
            (b"content-type", self._media_type.encode()),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await first_of(self._send_all(send), _until_gone(receive))
        finally:
            self._on_end()

    async def _send_all(self, send: Send) -> None:
        timeout_s = self._stall_seconds
        async for piece in self._pieces:
            for part, _ in in_pieces(piece):
                if not await sent(send({"type": "http.response.body", "body": part, "more_body": True}), timeout_s):
                    self._on_end()
                    await sent(send({"type": "http.response.body", "body": self._dropped}), LINGER_S)
                    return
        self._on_end()  # before the client knows, so that a client that reconnects immediately finds a free slot
        await sent(send({"type": "http.response.body", "body": b""}), timeout_s)


async def sent(sending: Awaitable[None], timeout_s: float) -> bool:
    """Return whether the client accepted it in time."""
    try:
        # Not `wait_for`, which in Python 3.11 loses a cancellation that comes as the work is done.
        async with asyncio.timeout(timeout_s):
            await sending
    except (TimeoutError, OSError):
        log.info("dropping a client that accepted nothing for %g seconds", timeout_s)
        return False
    return True


async def first_of(*works: Awaitable[None]) -> None:
    """Run all until one ends, and raise its exception."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_gone(receive: Receive) -> None:
    message: Message = {"type": ""}
    while message["type"] != "http.disconnect":
        message = await receive()

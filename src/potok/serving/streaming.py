"""Answers that keep coming: sent piece by piece, ended when the client goes, or when it takes nothing any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger(__name__)


class Streamed:
    """A response whose pieces come from an iterator; `on_end` is called however it ends."""

    def __init__(
        self, pieces: AsyncIterator[bytes], media_type: str, stall_seconds: float, on_end: Callable[[], object]
    ) -> None:
        self._pieces, self._media_type = pieces, media_type
        self._stall_seconds, self._on_end = stall_seconds, on_end

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
        async for piece in self._pieces:
            sending = send({"type": "http.response.body", "body": piece, "more_body": True})
            if not await sent(sending, self._stall_seconds):
                return
        await sent(send({"type": "http.response.body", "body": b""}), self._stall_seconds)


async def sent(sending: Awaitable[None], stall_seconds: float) -> bool:
    """Whether the client took it in time."""
    try:
        await asyncio.wait_for(asyncio.ensure_future(sending), stall_seconds)
    except (TimeoutError, OSError):
        log.info("a client took nothing for %g seconds, and is dropped", stall_seconds)
        return False
    return True


async def first_of(*works: Awaitable[None]) -> None:
    """Run all until one ends; what it raised is raised."""
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

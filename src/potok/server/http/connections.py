"""Limits of a connection, shared by all protocols, and the contract with `uvicorn.Server`."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

HEAD_BYTES = 64 << 10
"""Maximum size of the request line and the headers of a request; for HTTP/2, as HTTP/2 counts them."""

HEAD_S = 10.0
"""Time limit for a client to complete the headers of a request."""

STALL_S = 60.0
"""A client that accepts less than a piece of a response in this time is disconnected: its response uses memory."""


class ServerState(Protocol):
    """State that `uvicorn.Server` passes to each protocol. When it stops, it calls `shutdown()` of all `connections`
    and waits for the `tasks`."""

    total_requests: int
    connections: set[Any]
    tasks: set[asyncio.Task[None]]
    default_headers: list[tuple[bytes, bytes]]


Address = tuple[str, int] | None


def addresses(transport: asyncio.BaseTransport) -> tuple[Address, Address]:
    """Return the addresses of the server and of the client."""
    return _address(transport.get_extra_info("sockname")), _address(transport.get_extra_info("peername"))


def _address(found: Any) -> Address:
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) and len(found) > 1 else None


def is_encrypted(transport: asyncio.BaseTransport) -> bool:
    return transport.get_extra_info("sslcontext") is not None


def scheme_of(transport: asyncio.BaseTransport) -> str:
    return "https" if is_encrypted(transport) else "http"


def close(transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
    """Close a connection when its client has received everything, at the latest after `STALL_S`."""
    transport.close()
    if transport.get_write_buffer_size():
        loop.call_later(STALL_S, transport.abort)

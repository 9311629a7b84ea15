"""What the protocols of the server share: limits of a connection, and the contract with `uvicorn.Server`."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

HEAD_BYTES = 64 << 10
"""Maximum size of the request line and the headers of a request; for HTTP/2, as HTTP/2 counts them."""

HEAD_S = 10.0
"""A client that has begun a request must complete its headers within this time."""

STALL_S = 60.0
"""A client that accepts less than a piece of an answer in this time is disconnected: the answer is held meanwhile."""


class ServerState(Protocol):
    """What `uvicorn.Server` hands to each protocol. It calls `shutdown()` of all `connections` when it stops, and waits
    for the `tasks`."""

    total_requests: int
    connections: set[Any]
    tasks: set[asyncio.Task[None]]
    default_headers: list[tuple[bytes, bytes]]


Address = tuple[str, int] | None


def addresses(transport: asyncio.BaseTransport) -> tuple[Address, Address]:
    """The addresses of the server and of the client."""
    return _address(transport.get_extra_info("sockname")), _address(transport.get_extra_info("peername"))


def _address(found: Any) -> Address:
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) and len(found) > 1 else None


def close(transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
    """Close a connection when its client has taken what was written; do not wait longer than `STALL_S` for that."""
    transport.close()
    if transport.get_write_buffer_size():
        loop.call_later(STALL_S, transport.abort)

"""What a server allows one request, and all of them together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Whoever reaches a limit is told which."""

    body_bytes: int = 16 << 20
    """Of one request; of one line where rows are streamed in."""

    bodies_bytes: int = 128 << 20
    """Of all requests whose bodies are held at one time; whoever comes then is told that the server is busy."""

    connection_bytes: int = 32 << 20
    """Of the bodies and unfinished lines of one connection, with all of its requests."""

    rows: int = 100_000
    """Of an answer that ends."""

    answer_bytes: int = 128 << 20
    """Of an answer that ends."""

    unsent_bytes: int = 512 << 20
    """Of all answers that are written and not sent; requests are then refused as busy."""

    seconds: float = 60.0
    """For an answer that ends."""

    push_queries: int = 500
    """Open at one time."""

    stall_seconds: float = 30.0
    """That a client may take to accept what is being sent to it, before its connection is closed."""

    connections: int = 4_000
    """At one time; whoever comes then is told that the server is busy."""

    workers: int = 8
    """Threads for answers that end."""

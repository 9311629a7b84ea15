"""Limits of a server, per request and in total."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits; the error names the one that was exceeded."""

    body_bytes: int = 16 << 20
    """Of one request, or of one line of streamed rows."""

    bodies_bytes: int = 128 << 20
    """Of all request bodies in memory; further requests get a 503."""

    connection_bytes: int = 32 << 20
    """Of the bodies and unfinished lines of one connection, with all of its requests."""

    rows: int = 100_000
    """Of a finite response."""

    answer_bytes: int = 128 << 20
    """Of a finite response."""

    unsent_bytes: int = 512 << 20
    """Of all computed and unsent responses; further requests get a 503."""

    seconds: float = 60.0
    """For a finite response."""

    push_queries: int = 500
    """Maximum number of open ones."""

    stall_seconds: float = 30.0
    """Time for a client to accept sent data before its connection is closed."""

    connections: int = 4_000
    """Concurrent connections; further ones get a 503."""

    workers: int = 8
    """Threads for finite responses."""

    requests_per_second: float | None = None
    """Of each token without a rate of its own; further requests get a 429."""

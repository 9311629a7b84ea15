"""Requests per second of each token."""

from __future__ import annotations

import time

from potok.server.access.callers import Caller
from potok.server.errors import TooManyRequests

MOST = 10_000
"""Tokens that are remembered. Those of the file are fewer; this bounds a file that is changed all the time."""


class RateLimits:
    """A bucket per token, filled at its rate up to the requests of one second. Called on the event loop alone.

    Args:
        per_second: Of tokens without a rate of their own; None for no limit.
    """

    def __init__(self, per_second: float | None = None) -> None:
        self._per_second = per_second
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: Caller) -> None:
        """Count a request; raises `TooManyRequests` if the bucket is empty."""
        rate = caller.per_second or self._per_second
        if rate is None:
            return
        now, size = time.monotonic(), max(rate, 1.0)
        left, at = self._buckets.get(caller.name, (size, now))
        left = min(size, left + (now - at) * rate)
        if left < 1:
            raise TooManyRequests(rate, (1 - left) / rate)
        if len(self._buckets) >= MOST and caller.name not in self._buckets:
            self._buckets.clear()
        self._buckets[caller.name] = (left - 1, now)

"""Count observations in fixed buckets."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Distribution:
    """A reading of a histogram: the count of each bucket, the last without an upper bound, and the sum."""

    counts: tuple[int, ...]
    total: float


class Histogram:
    """A histogram that any thread may observe."""

    __slots__ = ("_bounds", "_counts", "_lock", "_total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds, self._lock = bounds, threading.Lock()
        self._counts, self._total = [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        with self._lock:
            self._counts[bisect_left(self._bounds, value)] += 1
            self._total += value

    @contextmanager
    def time(self) -> Iterator[None]:
        """Observe the seconds that a block takes."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.observe(time.perf_counter() - began)

    def read(self) -> Distribution:
        with self._lock:
            return Distribution(tuple(self._counts), self._total)

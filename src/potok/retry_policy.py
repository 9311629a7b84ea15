"""Retry with exponential backoff, jitter and a time limit: the one policy for brokers, servers and sinks.

It decides when to retry and leaves the call to its caller, unlike the retry libraries: a query group schedules the next
attempt and runs other queries until then, a stop request ends a pause, and a server may ask for a longer one.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

FIRST_S = 0.05
MOST_S = 5.0

BRIEFLY_MS = 2_000
"""Time limit of a call whose caller retries: a query does so between batches, where it can stop and report the
cause."""


GIVE_UP_MS = 60_000
"""Time limit of a call whose caller does not retry."""


_here = threading.local()


@contextmanager
def brief_calls() -> Iterator[None]:
    """Have clients give up after `BRIEFLY_MS`, in this thread: the caller retries, or does without."""
    before = is_brief()
    _here.brief = True
    try:
        yield
    finally:
        _here.brief = before


def is_brief() -> bool:
    return getattr(_here, "brief", False)


class Retry:
    """The retries of one operation."""

    def __init__(
        self,
        for_ms: int,
        given_up: threading.Event | None = None,
        *,
        first_s: float = FIRST_S,
        most_s: float = MOST_S,
    ) -> None:
        """Start the time limit.

        Args:
            for_ms: The time limit; 0 means none.
            given_up: Ends a pause early when another thread sets it.
            first_s: The first pause; each following one is twice as long.
            most_s: The longest pause.
        """
        self._end = time.monotonic() + for_ms / 1000 if for_ms else float("inf")
        self._delay_s, self._most_s = first_s, most_s
        self._given_up = given_up or threading.Event()
        self.tries = 0

    def pause(self, at_least_s: float = 0.0) -> float | None:
        """Return the seconds to wait before the next try, or None when the time is up."""
        self.tries += 1
        # Jitter: clients that failed together must not retry together.
        delay_s = max(self._delay_s * random.uniform(0.5, 1.0), at_least_s)
        self._delay_s = min(self._delay_s * 2, self._most_s)
        return None if time.monotonic() + delay_s > self._end else delay_s

    def wait(self, at_least_s: float = 0.0) -> bool:
        """Wait before the next try; return False at once when the time is up."""
        delay_s = self.pause(at_least_s)
        return delay_s is not None and not self._given_up.wait(delay_s)

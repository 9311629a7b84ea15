"""Trying again what may pass: with growing pauses, until the time is over. The one policy for servers and sinks."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

FIRST_S = 0.05
MOST_S = 5.0

BRIEFLY_MS = 2_000
"""How long one call goes on by itself where whoever made it tries again: a query between its batches, where it can be
stopped and says what it waits for."""


GIVE_UP_MS = 60_000
"""How long one call goes on by itself where nobody tries again."""


_here = threading.local()


@contextmanager
def brief_calls() -> Iterator[None]:
    """Have clients give up after `BRIEFLY_MS`, in this thread: whoever calls tries again, or does without."""
    before = is_brief()
    _here.brief = True
    try:
        yield
    finally:
        _here.brief = before


def is_brief() -> bool:
    return getattr(_here, "brief", False)


class Retry:
    """How long to try one thing again. It ends early where somebody else has given up, or wants to stop."""

    def __init__(self, for_ms: int, given_up: threading.Event | None = None) -> None:
        """`for_ms` is counted from here on; 0 is for ever."""
        self._began = time.monotonic()
        self._end = self._began + for_ms / 1000 if for_ms else float("inf")
        self._delay_s = FIRST_S
        self._given_up = given_up or threading.Event()
        self.tries = 0

    @property
    def waited_s(self) -> float:
        return time.monotonic() - self._began

    def pause(self, at_least_s: float = 0.0) -> float | None:
        """How many seconds to wait before the next try; None where there is to be none."""
        self.tries += 1
        # Those who were turned away together must not come back together.
        delay_s = max(self._delay_s * random.uniform(0.5, 1.0), at_least_s)
        self._delay_s = min(self._delay_s * 2, MOST_S)
        return None if time.monotonic() + delay_s > self._end else delay_s

    def wait(self, at_least_s: float = 0.0) -> bool:
        """Wait before the next try; False, at once, where there is to be none."""
        delay_s = self.pause(at_least_s)
        return delay_s is not None and not self._given_up.wait(delay_s)

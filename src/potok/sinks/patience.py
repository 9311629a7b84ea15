"""Trying again: ever more slowly, until the time is over."""

from __future__ import annotations

import random
import threading
import time

FIRST_S = 0.05
MOST_S = 5.0


class Patience:
    """How long to go on with one thing. It ends early where somebody else has given up."""

    def __init__(self, for_ms: int, given_up: threading.Event | None = None) -> None:
        self._end = time.monotonic() + for_ms / 1000
        self._delay_s = FIRST_S
        self._given_up = given_up or threading.Event()

    def wait(self, at_least_s: float = 0.0) -> bool:
        """Wait before the next try; False, at once, where there is to be none."""
        # Those who were turned away together must not come back together.
        delay_s = max(self._delay_s * random.uniform(0.5, 1.0), at_least_s)
        self._delay_s = min(self._delay_s * 2, MOST_S)
        if time.monotonic() + delay_s > self._end:
            return False
        return not self._given_up.wait(delay_s)

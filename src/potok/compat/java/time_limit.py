"""Limit the time that a regular expression may take. Java's expressions can take time that doubles with each
character."""

from __future__ import annotations

import threading
import time

TEXT_S = 1.0
"""A text may take so long where nobody has set a deadline."""


class _Running(threading.local):
    end: float | None = None


_running = _Running()


def time_left() -> float:
    """Return how long the text at hand may still take, in seconds; more than none."""
    return TEXT_S if _running.end is None else max(_running.end - time.monotonic(), 1e-6)


def set_deadline(end: float | None) -> None:
    """Stop the expressions of this thread at a time of the monotonic clock; None takes the deadline back."""
    _running.end = end

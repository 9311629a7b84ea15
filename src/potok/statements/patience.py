"""How long the work of a thread may take: looked at between two pieces of it, for a thread cannot be stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from potok.errors import QueryError

T = TypeVar("T")

PIECE = 4_096
"""So many small things are done between two looks at the clock."""


class TimeIsOver(QueryError):
    """Whoever asked waits no more."""

    def __init__(self) -> None:
        super().__init__("the query took too long, and was ended", hint="ask for less: by key, or with a LIMIT")


class _End(threading.local):
    at: float | None = None


_end = _End()


def until(end: float, work: Callable[[], T]) -> T:
    """Do work of this thread that may not go on after an instant of the monotonic clock."""
    _end.at = end
    try:
        check_time()
        return work()
    finally:
        _end.at = None


def check_time() -> None:
    """Raise if the time of this thread's work is over."""
    if _end.at is not None and time.monotonic() > _end.at:
        raise TimeIsOver


def in_time(items: Iterable[T]) -> Iterator[T]:
    """The same items, with a look at the clock now and then."""
    for number, item in enumerate(items):
        if number % PIECE == 0:
            check_time()
        yield item

"""Figures as server-sent events."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self

from potok.server.api.feeds import Event
from potok.server.ksql.json_rows import dump

LOOK_S = 0.5


class LiveFigures:
    """One event at once, one per interval, and one at the end: the state in which the server stops.

    Args:
        read: Returns the figures.
        first: Returns those of the first event, with the history.
        last: Returns those of the last event, read at that moment.
    """

    look_s = LOOK_S

    def __init__(
        self, read: Callable[[], Any], first: Callable[[], Any] | None = None, last: Callable[[], Any] | None = None
    ) -> None:
        self._read, self._first, self._last = read, first or read, last or read
        self._number, self._sent_at = 0, -1e9
        self._closed = self._has_ended = False
        self.wake: Callable[[], None] | None = None

    @property
    def subscription(self) -> Self:
        """Set the function that wakes the reader."""
        return self

    def take(self) -> list[Event] | None:
        """Return the figures if they are due; None at the end."""
        if self._has_ended:
            return None
        if self._closed:
            self._has_ended = True
            return self._event(self._last())
        if time.monotonic() - self._sent_at < LOOK_S * 0.9:
            return []
        return self._event(self._first() if not self._number else self._read())

    def _event(self, figures: Any) -> list[Event]:
        self._number, self._sent_at = self._number + 1, time.monotonic()
        return [Event(str(self._number), dump(figures))]

    def close(self) -> None:
        self._closed = True
        if self.wake is not None:
            self.wake()

"""How long a table keeps what nobody changes, and what it was before it changed."""

from __future__ import annotations

from dataclasses import dataclass

from potok.duration import show_ms


@dataclass(frozen=True, slots=True)
class Lifetime:
    """With `ttl_ms`, a row is deleted so long after its last change: when the closing clock has passed the event time
    of that change, or, `by_processing_time`, when so much time has gone by since it was read.

    With `history_ms`, versions of a row that are no longer the last stay readable for so long behind the clock.
    """

    ttl_ms: int | None = None
    by_processing_time: bool = False
    history_ms: int | None = None

    @property
    def timed(self) -> bool:
        """Whether the closing clock is asked: it ends something, or what processing time ends stands where it is."""
        return self.history_ms is not None or self.ttl_ms is not None

    @property
    def cells(self) -> str:
        """What the cells hold besides rows: a table that did not keep it before cannot begin to."""
        if self.history_ms is not None:
            return "objects with versions"
        if self.ttl_ms is not None:
            return f"objects with {'processing' if self.by_processing_time else 'event'} times"
        return "objects"

    def __str__(self) -> str:
        if self.history_ms is not None:
            return f"history of {show_ms(self.history_ms)}"
        if self.ttl_ms is None:
            return ""
        return f"time to live {show_ms(self.ttl_ms)}{' by the clock' if self.by_processing_time else ''}"


FOREVER = Lifetime()
"""Rows stay until they are deleted, and nothing is remembered of what they were."""

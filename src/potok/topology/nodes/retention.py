"""How long a table keeps rows that do not change, and earlier versions of rows."""

from __future__ import annotations

from dataclasses import dataclass

from potok.duration import show_ms


@dataclass(frozen=True, slots=True)
class Lifetime:
    """With `ttl_ms`, a row is deleted that long after its last change: when the watermark has passed the event
    time of that change by it or, `by_processing_time`, when that much time has passed since it was read.

    With `history_ms`, earlier versions of a row stay readable until the watermark has passed them by that much.
    """

    ttl_ms: int | None = None
    by_processing_time: bool = False
    history_ms: int | None = None

    @property
    def timed(self) -> bool:
        """Whether the watermark matters: it expires rows or versions, or rows that expire by processing time."""
        return self.history_ms is not None or self.ttl_ms is not None

    @property
    def cells(self) -> str:
        """Return what the cells store besides rows: a table without it cannot add it later."""
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
"""Rows stay until they are deleted, and no versions are stored."""

"""Text that does not fit a pattern, while it is read."""

from __future__ import annotations


class Unparseable(Exception):
    """Nothing fits here; the caller, which knows the whole text, reports it."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at

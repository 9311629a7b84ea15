"""Text that does not fit a pattern, while it is read."""

from __future__ import annotations


class Unparseable(Exception):
    """Nothing fits here; whoever knows the whole text tells the reader."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at

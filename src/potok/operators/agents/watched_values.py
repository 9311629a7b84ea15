"""Values that agents may read, but not change in place: a change raises an error at the end of the turn.

These are values of expired windows, and of overlapping windows, where a change of one would be missing in the others.
What `table[key].seen.append(1)` does is only known afterwards, so the values are compared then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from potok.errors import StateError
from potok.operators.agents.values import copied

if TYPE_CHECKING:
    from potok.operators.agents.tables import Entry


class Watched:
    """A value that was handed out, a copy of it, and the error to raise if they differ. One that is in no table has
    no entry."""

    __slots__ = ("copy", "entry", "error", "value")

    def __init__(self, value: Any, error: StateError, entry: Entry | None = None) -> None:
        self.value, self.error, self.entry = value, error, entry
        self.copy = copied(value)

    def check(self) -> None:
        if self.value != self.copy:
            raise self.error


def check_watched(watched: Iterable[Watched]) -> None:
    """Raise if one of these was changed."""
    for each in watched:
        each.check()


def keep(watched: Iterable[Watched]) -> None:
    """Accept the current content of these."""
    for each in watched:
        each.copy = copied(each.value)

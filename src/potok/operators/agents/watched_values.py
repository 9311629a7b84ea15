"""Values that agents may look at, but not change in place: who does hears of it when its turn is over.

They are those of windows that are over, and of windows that overlap, where a change of one would be missing in the
others. Nobody can tell what `table[key].seen.append(1)` does before it is done, so the values are looked at afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from potok.errors import StateError
from potok.operators.agents.values import copied

if TYPE_CHECKING:
    from potok.operators.agents.tables import Entry


class Watched:
    """A value that was handed out, what it was like, and what to raise if it is so no more. One that is in no table
    has no entry."""

    __slots__ = ("entry", "error", "kept", "value")

    def __init__(self, value: Any, error: StateError, entry: Entry | None = None) -> None:
        self.value, self.error, self.entry = value, error, entry
        self.kept = copied(value)

    def check(self) -> None:
        if self.value != self.kept:
            raise self.error


def check_watched(watched: Iterable[Watched]) -> None:
    """Raise if one of these was changed."""
    for each in watched:
        each.check()


def keep(watched: Iterable[Watched]) -> None:
    """What these are like at this moment is right."""
    for each in watched:
        each.kept = copied(each.value)

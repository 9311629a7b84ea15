"""What an iterative condition sees of the match so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from potok.operators.patterns.runs import Link, taken


class Taken(list[Any]):
    """The values that a variable has taken, in order."""

    @property
    def first(self) -> Any:
        return self[0] if self else None

    @property
    def last(self) -> Any:
        return self[-1] if self else None


class MatchSoFar:
    """The values of each variable: `m["small"].first["amount"]`."""

    def __init__(self, names: tuple[str, ...], link: Link | None, as_seen: Callable[[Any], Any]) -> None:
        self._names, self._link, self._as_seen = names, link, as_seen

    def __getitem__(self, name: str) -> Taken:
        if name not in self._names:
            raise KeyError(name)
        number = self._names.index(name)
        return Taken(self._as_seen(row.value) for variable, row in taken(self._link) if variable == number)

    @property
    def rows(self) -> list[tuple[int, Any]]:
        """The number of the variable and the value of each record, in order."""
        return [(variable, row.value) for variable, row in taken(self._link)]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Taken:
            try:
                return self[name]
            except KeyError:
                raise AttributeError(name) from None

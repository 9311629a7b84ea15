"""Values of agents: copies that no later change reaches, and values that agents must not change in place."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any

from potok.errors import StateError
from potok.state.codec import dump_state, load_state

if TYPE_CHECKING:
    from potok.operators.agents.tables import Entry


IMMUTABLE: frozenset[type] = frozenset(
    (str, int, float, bool, bytes, type(None), dt.datetime, dt.date, dt.time, dt.timedelta, Decimal, uuid.UUID)
)
"""Types whose values are immutable."""


class Absent:
    """The value of a key that has none."""


ABSENT: Any = Absent()

SETTLED: frozenset[type] = IMMUTABLE | {Absent}
"""Types whose values need no copy."""

SCALARS: frozenset[type] = frozenset((str, int, float, bool, type(None)))
"""Types whose values are data without a check."""


def copied(value: Any) -> Any:
    """Return a deep copy. A value that is not data raises here, in the call that would store it."""
    kind = type(value)
    if kind in IMMUTABLE:
        return value
    if kind is list:
        return value[:] if IMMUTABLE.issuperset(map(type, value)) else [copied(item) for item in value]
    if kind is dict:
        return {key: item if type(item) in IMMUTABLE else copied(item) for key, item in value.items()}
    if kind is set and IMMUTABLE.issuperset(map(type, value)):
        return set(value)
    if isinstance(value, Enum):
        return value
    if kind in models or _is_model(value):
        made: Any = object.__new__(kind)
        parts: dict[str, Any] = value.__dict__
        if IMMUTABLE.issuperset(map(type, parts.values())):
            made.__dict__ = parts.copy()
        else:
            made.__dict__ = {name: item if type(item) in IMMUTABLE else copied(item) for name, item in parts.items()}
        return made
    return load_state(dump_state(value))


models: set[type] = set()
"""Classes whose objects consist of their fields."""


def _is_model(value: Any) -> bool:
    if not hasattr(type(value), "__dataclass_fields__") or not hasattr(value, "__dict__"):
        return False
    models.add(type(value))
    return True


class Watched:
    """A value that was handed out, a copy of it, and the error to raise if they differ. One that is in no table has
    no entry.

    Agents may read the values of expired windows, and of overlapping windows, where a change of one would be missing in
    the others. What `table[key].seen.append(1)` does is only known afterwards, so the values are compared at the end of
    the turn.
    """

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

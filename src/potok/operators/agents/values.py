"""Values of agents: copies that no later change reaches."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from enum import Enum
from typing import Any

from potok.state.codec import dump_state, load_state

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

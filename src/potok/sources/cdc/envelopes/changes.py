"""Changes of one table, in their order, before they are written as records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from potok.sources.cdc.envelopes.shape import Shape

CREATE, UPDATE, DELETE, READ, TRUNCATE = "c", "u", "d", "r", "t"


class _Unavailable:
    """A value that the change did not touch, and that the database therefore does not send."""

    def __repr__(self) -> str:
        return "UNAVAILABLE"


UNAVAILABLE: Final = _Unavailable()

Value: TypeAlias = "bytes | _Unavailable | None"
"""A value as the stream has it; `Column.read` returns the text that the database prints for it."""

Row: TypeAlias = "tuple[Value, ...]"


class Change(NamedTuple):
    """One change of a row. `before` is None if the database does not say it."""

    op: str
    before: Row | None
    after: Row | None
    before_is_key: bool
    commit_ms: int
    origin: tuple[Any, ...]
    """What the field `source` says about it; each kind of database has its own."""


@dataclass(slots=True)
class ChangeBlock:
    """Changes of one table that have the same columns."""

    shape: Shape
    changes: list[Change] = field(default_factory=list)

"""Changes of one table, in their order, before they are written as records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from potok.sources.cdc.postgres.pgoutput import Row
from potok.sources.cdc.shape import Shape

CREATE, UPDATE, DELETE, READ, TRUNCATE = "c", "u", "d", "r", "t"


class Change(NamedTuple):
    """One change of a row. `before` is None if the database does not say it."""

    op: str
    before: Row | None
    after: Row | None
    before_is_key: bool
    lsn: int
    xid: int
    commit_ms: int
    last_commit: int
    """Where the transaction before this one was committed."""


@dataclass(slots=True)
class ChangeBlock:
    """Changes of one table that have the same columns."""

    shape: Shape
    snapshot: bool = False
    changes: list[Change] = field(default_factory=list)

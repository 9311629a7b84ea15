"""One side of a join."""

from __future__ import annotations

from dataclasses import dataclass

from potok.sql.analysis.scope import Rows
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.syntax import ast


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: its rows, and the expression that must equal the other side's."""

    rows: Rows
    condition: ast.Expression
    key: Typed

    @property
    def is_own_key(self) -> bool:
        """Whether the records already have this key, apart from a window."""
        if any(_is_same(self.key, expression) for expression in self.rows.equal):
            return True
        keys = self.rows.keys
        return len(keys) == 1 and isinstance(self.key, ColumnRef) and self.key.column == keys[0].slot

    @property
    def equal_to_key(self) -> tuple[Typed, ...]:
        """The expressions that equal the key of the join."""
        return self.rows.equal if self.is_own_key and self.rows.equal else (self.key,)


def _is_same(one: Typed, other: Typed) -> bool:
    if isinstance(one, ColumnRef) and isinstance(other, ColumnRef):
        return one.column == other.column
    return one == other

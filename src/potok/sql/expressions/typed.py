"""Checked expressions: every name is a column, every part has a type, every implicit cast stands there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from potok.sql.syntax import ast


@dataclass(frozen=True, slots=True)
class Typed:
    """A checked expression. It is plain data: it can be pickled, compared, and printed as SQL."""

    type: pa.DataType

    @property
    def children(self) -> tuple[Typed, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class ColumnRef(Typed):
    """A column by the name under which the computation will be given it."""

    column: str
    shown: str = ""
    """How a statement would write it, if not by that name."""

    def __str__(self) -> str:
        return self.shown or self.column


class Scope(Protocol):
    """What names mean where an expression stands."""

    @property
    def custom_types(self) -> Mapping[str, pa.DataType]: ...

    def column(self, name: ast.Name) -> Typed:
        """The column of this name; raises `UnknownName` with a suggestion, or `Refused` if it could be several."""
        ...

    def call(self, call: ast.Call) -> Typed | None:
        """What a call means here, if not what it means everywhere: aggregates stand for columns computed before."""
        ...


def walk(expression: Typed) -> Iterator[Typed]:
    """The expression and all its parts."""
    yield expression
    for child in expression.children:
        yield from walk(child)


def columns_of(expression: Typed) -> frozenset[str]:
    """The columns that an expression looks at."""
    return frozenset(part.column for part in walk(expression) if isinstance(part, ColumnRef))

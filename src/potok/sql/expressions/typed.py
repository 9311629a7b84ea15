"""Checked expressions: names are resolved to columns, every part has a type, implicit casts are explicit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from potok.sql.syntax import ast


@dataclass(frozen=True, slots=True)
class Typed:
    """A checked expression: plain data that can be pickled, compared, and printed as SQL."""

    type: pa.DataType

    @property
    def children(self) -> tuple[Typed, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class ColumnRef(Typed):
    """A column by the name under which the computation receives it."""

    column: str
    display: str = ""
    """How it is written in a statement, if different."""

    def __str__(self) -> str:
        return self.display or self.column


class Scope(Protocol):
    """Resolves the names in an expression."""

    @property
    def custom_types(self) -> Mapping[str, pa.DataType]: ...

    def column(self, name: ast.Name) -> Typed:
        """Return the column of this name; raises `UnknownName` with a suggestion, or `Refused` if it is ambiguous."""
        ...

    def call(self, call: ast.Call) -> Typed | None:
        """Return the special meaning of a call in this scope: aggregates are columns that are already computed."""
        ...


def walk(expression: Typed) -> Iterator[Typed]:
    """Yield the expression and all its parts."""
    yield expression
    for child in expression.children:
        yield from walk(child)


def columns_of(expression: Typed) -> frozenset[str]:
    """Return the columns that an expression reads."""
    return frozenset(part.column for part in walk(expression) if isinstance(part, ColumnRef))

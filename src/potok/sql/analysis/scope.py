"""Resolve the names in a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.sql.catalog import Source, WindowShape
from potok.sql.errors import Refused, UnknownName, closest
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.syntax import ast
from potok.sql.types import BIGINT, INT, quoted

ROWTIME = "ROWTIME"
WINDOW_BOUNDS = ("WINDOWSTART", "WINDOWEND")
PSEUDO = {"ROWTIME": BIGINT, "ROWPARTITION": INT, "ROWOFFSET": BIGINT}
"""Pseudo columns of every record."""


def slot_of(source: str, name: str) -> str:
    """Return the name under which a computation is given a column of a source."""
    return f"{quoted(source) if '.' in source else source}.{name}" if source else name


@dataclass(frozen=True, slots=True)
class Field:
    """A column in scope. `hidden` columns are not part of `*`."""

    name: str
    source: str
    type: pa.DataType
    is_key: bool = False
    hidden: bool = False

    @property
    def slot(self) -> str:
        """The name under which a computation receives the column."""
        return slot_of(self.source, self.name)


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of the rows that a clause of a query sees."""

    is_table: bool
    fields: tuple[Field, ...]
    window: WindowShape | None = None
    keys: tuple[Field, ...] = ()
    """The key columns, in order."""
    joined: bool = False
    equal: tuple[Typed, ...] = ()
    """Expressions that equal the key of a join, the left source's first; a column among them can be selected as the
    key."""

    @property
    def stand_ins(self) -> list[str]:
        """The slots of the columns that can be selected as the key of a join."""
        return [expression.column for expression in self.equal if isinstance(expression, ColumnRef)]

    @property
    def sources(self) -> list[str]:
        return list(dict.fromkeys(field.source for field in self.fields))

    def find(self, name: str, source: str) -> list[Field]:
        return [field for field in self.fields if field.name == name and source in ("", field.source)]


@dataclass(frozen=True, slots=True)
class RowScope:
    """The scope of expressions over single records. `replaced` maps calls to columns that are already computed."""

    rows: Rows
    custom_types: Mapping[str, pa.DataType]
    replaced: Mapping[ast.Call, Typed] | None = None

    def column(self, name: ast.Name) -> Typed:
        field = resolve(self.rows, name)
        return ColumnRef(field.type, field.slot, display=quoted(field.name))

    def call(self, call: ast.Call) -> Typed | None:
        return (self.replaced or {}).get(call)


def resolve(rows: Rows, name: ast.Name) -> Field:
    """Return the column that a name refers to."""
    found = rows.find(name.name, name.source)
    if len(found) == 1:
        return found[0]
    rendered = f"{name.source}.{name.name}" if name.source else quoted(name.name)
    if found:
        choices = " or ".join(f"{field.source}.{quoted(field.name)}" for field in found)
        raise Refused(f"{rendered} could be a column of several sources", hint=f"write {choices}", location=name.at)
    if name.source and name.source not in rows.sources:
        hint = closest(name.source, rows.sources) or f"the sources here are {', '.join(rows.sources)}"
        raise UnknownName(f"there is no source {quoted(name.source)} here", hint=hint, location=name.at)
    if name.name in WINDOW_BOUNDS:
        hint = "it is available after GROUP BY with a WINDOW, and for sources with WINDOW_TYPE"
        raise UnknownName(f"{rendered} is for windowed tables", hint=hint, location=name.at)
    known = [field.name for field in rows.fields if not field.hidden and name.source in ("", field.source)]
    hint = closest(name.name, [*known, *PSEUDO]) or f"the columns are {', '.join(map(quoted, known))}"
    raise UnknownName(f"there is no column {rendered}", hint=hint, location=name.at)


def own_fields(rows: Rows) -> Sequence[Field]:
    """Return the columns of `*`."""
    return [field for field in rows.fields if not field.hidden]


def source_fields(source: Source, alias: str, *, positions: bool) -> tuple[Field, ...]:
    """Return the columns of a source in the order of `*`, then the hidden ones. `positions` says that rows are records,
    which have a position in a topic."""
    fields = [Field(column.name, alias, column.type, is_key=True) for column in source.keys]
    if source.window is not None:
        fields += [Field(name, alias, BIGINT, is_key=True) for name in WINDOW_BOUNDS]
    fields += [Field(column.name, alias, column.type) for column in source.columns if not column.is_key]
    pseudo = PSEUDO if positions else {ROWTIME: BIGINT}
    return (*fields, *(Field(name, alias, type_, hidden=True) for name, type_ in pseudo.items()))


def rows_with(
    fields: Sequence[Field], *, is_table: bool, window: WindowShape | None = None, joined: bool = False
) -> Rows:
    """Return rows whose key consists of the key columns among these fields."""
    keys = tuple(field for field in fields if field.is_key and field.name not in WINDOW_BOUNDS)
    return Rows(is_table, tuple(fields), window, keys, joined)

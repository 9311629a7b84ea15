"""Analyse the joins of a SELECT: conditions, join types, and the columns of the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa

from potok.sql.analysis.form import Form
from potok.sql.analysis.scope import Field, Rows, RowScope, rows_with
from potok.sql.catalog import WindowShape
from potok.sql.errors import Refused, SqlTypeError
from potok.sql.expressions.check import check
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.functions.function import common_type
from potok.sql.syntax import ast
from potok.sql.syntax.lexer.text import show
from potok.sql.syntax.walk import names_of
from potok.sql.types import quoted, type_name

ROWKEY = "ROWKEY"


class How(Enum):
    """The kinds of join."""

    STREAMS = "streams"
    LOOKUP = "lookup"
    TABLES = "tables"
    FOREIGN_KEY = "foreign key"
    SNAPSHOT = "snapshot"
    """All rows of both sources at one point in time."""


@dataclass(frozen=True, slots=True)
class JoinAnalysis:
    """One JOIN: the two sides, the join condition, and the rows of the result."""

    kind: ast.JoinKind
    how: How
    left: tuple[Typed, ...]
    right: tuple[Typed, ...]
    rows: Rows
    left_by_key: bool = False
    """Whether the rows so far already have the key of the join, apart from a window."""
    right_by_key: bool = False
    within: ast.Within | None = None


def analyse_join(
    left: Rows, right: Rows, clause: ast.Join, types: Mapping[str, pa.DataType], form: Form
) -> JoinAnalysis:
    if form is Form.PULL:
        return _snapshot(left, right, clause, types)
    return _continuous(replace(left, fields=tuple(f for f in left.fields if f.source)), right, clause, types)


def _snapshot(left: Rows, right: Rows, clause: ast.Join, types: Mapping[str, pa.DataType]) -> JoinAnalysis:
    if clause.within is not None:
        hint = "leave it out: a query that ends sees all records at once; compare ROWTIME in WHERE"
        raise Refused("WITHIN is for queries that keep running", hint=hint, location=clause.within.at)
    pairs = [_compared(part, left, right, types) for part in _conjuncts(clause.condition)]
    is_table = left.is_table and right.is_table
    rows = rows_with((*left.fields, *right.fields), is_table=is_table, joined=True)
    return JoinAnalysis(
        clause.kind, How.SNAPSHOT, tuple(one for one, _ in pairs), tuple(other for _, other in pairs), rows
    )


def _conjuncts(condition: ast.Expression) -> Iterator[ast.Binary]:
    if isinstance(condition, ast.Binary) and condition.op == "AND":
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    elif isinstance(condition, ast.Binary) and condition.op == "=":
        yield condition
    else:
        hint = f"write ON a.column = b.column, and put {show(condition)} into WHERE"
        raise Refused("a join condition must be an equality", hint=hint, location=condition.at)


def _compared(part: ast.Binary, left: Rows, right: Rows, types: Mapping[str, pa.DataType]) -> tuple[Typed, Typed]:
    """Return both sides of an equality, with casts to a type that holds the values of both."""
    one, other = _sides(part, left, right, types)
    if one.key.type == other.key.type:
        return one.key, other.key
    to = common_type([one.key.type, other.key.type])
    if to is None:
        hint = f"write CAST({show(one.condition)} AS {type_name(other.key.type)})"
        message = f"cannot join {type_name(one.key.type)} with {type_name(other.key.type)}"
        raise SqlTypeError(message, hint=hint, location=part.at)
    return check(one.condition, RowScope(left, types), to=to), check(other.condition, RowScope(right, types), to=to)


def _sides(part: ast.Binary, left: Rows, right: Rows, types: Mapping[str, pa.DataType]) -> tuple[Side, Side]:
    of_right = [_is_right(side, left, right) for side in (part.left, part.right)]
    if of_right[0] == of_right[1]:
        hint = "compare a column of the one source with a column of the other"
        raise Refused("both sides of the condition are of the same source", hint=hint, location=part.at)
    one, other = (part.right, part.left) if of_right[0] else (part.left, part.right)
    return Side(left, one, check(one, RowScope(left, types))), Side(right, other, check(other, RowScope(right, types)))


def _is_right(part: ast.Expression, left: Rows, right: Rows) -> bool:
    for name in names_of(part):
        if name.source in right.sources:
            return True
        if name.source in left.sources:
            return False
        found = [bool(rows.find(name.name, name.source)) for rows in (left, right)]
        if any(found):
            return found[1]
    hint = "each side of the equality names a column of one source"
    raise Refused(f"{show(part)} belongs to neither side of the join", hint=hint, location=part.at)


def _continuous(left: Rows, right: Rows, clause: ast.Join, types: Mapping[str, pa.DataType]) -> JoinAnalysis:
    condition = clause.condition
    if not isinstance(condition, ast.Binary) or condition.op != "=":
        hint = f"write ON a.column = b.column, not {show(condition)}"
        raise Refused("a join needs one equality", hint=hint, location=condition.at)
    one, other = _sides(condition, left, right, types)
    check_key_type(one, other, condition)
    check_windows(one, other, clause)
    how = _how(one, other, clause)
    _check_kind(how, clause)
    rows = _foreign_rows(one, right) if how is How.FOREIGN_KEY else _joined_rows(one, other, clause.kind)
    return JoinAnalysis(
        clause.kind, how, (one.key,), (other.key,), rows, one.is_own_key, other.is_own_key, clause.within
    )


def _how(one: Side, other: Side, clause: ast.Join) -> How:
    if not one.rows.is_table and not other.rows.is_table:
        if clause.within is None:
            hint = "say how far apart the records may be: JOIN ... WITHIN 1 HOUR ON ..."
            raise Refused("a join of two streams needs WITHIN", hint=hint, location=clause.at)
        return How.STREAMS
    if not other.rows.is_table:
        hint = "write the stream first: FROM stream LEFT JOIN table, or INNER JOIN"
        raise Refused("a table cannot be joined with a stream", hint=hint, location=clause.at)
    if clause.within is not None:
        hint = "leave it out: a record is joined with the current row of the table"
        raise Refused("WITHIN is for joins of two streams", hint=hint, location=clause.within.at)
    check_primary_key(other)
    if not one.rows.is_table:
        return How.LOOKUP
    return How.TABLES if one.is_own_key else How.FOREIGN_KEY


def _check_kind(how: How, clause: ast.Join) -> None:
    """Reject joins that would preserve rows of a side whose changes produce no results."""
    if clause.kind in (ast.JoinKind.INNER, ast.JoinKind.LEFT):
        return
    if how is How.LOOKUP:
        hint = "write FROM stream LEFT JOIN table, or INNER JOIN: only records of the stream produce results"
        raise Refused(f"a stream and a table do not support {clause.kind.value} JOIN", hint=hint, location=clause.at)
    if how is How.FOREIGN_KEY:
        hint = "join by the primary keys of both, or use LEFT JOIN"
        raise Refused(f"a foreign-key join does not support {clause.kind.value} JOIN", hint=hint, location=clause.at)


def _joined_rows(one: Side, other: Side, kind: ast.JoinKind) -> Rows:
    """Return the columns of both sides, left ones first, under the key of the join."""
    equal: tuple[Typed, ...] = ()
    if kind is not ast.JoinKind.FULL:
        equal = tuple(dict.fromkeys((*one.equal_to_key, *other.equal_to_key)))
    certain = {
        ast.JoinKind.INNER: (one.key, other.key),
        ast.JoinKind.LEFT: (one.key,),
        ast.JoinKind.RIGHT: (other.key,),
        ast.JoinKind.FULL: (),
    }[kind]
    fields = tuple(replace(field, is_key=False) for field in (*one.rows.fields, *other.rows.fields))
    slots = [expression.column for expression in certain if isinstance(expression, ColumnRef)]
    keys = tuple(field for field in fields if field.slot in slots[:1])
    is_table = one.rows.is_table and other.rows.is_table
    return _named_key(Rows(is_table, fields, one.rows.window, keys, joined=True, equal=equal), one.key.type)


def _foreign_rows(one: Side, right: Rows) -> Rows:
    """Return the columns of both sides under the key of the left table."""
    fields = tuple(replace(field, is_key=False) for field in (*one.rows.fields, *right.fields))
    if one.rows.joined and not any(field.is_key for field in one.rows.fields):
        types = [*(expression.type for expression in one.rows.equal), *(field.type for field in one.rows.keys)]
        return _named_key(Rows(True, fields, joined=True, equal=one.rows.equal), types[0])
    own = {field.slot for field in one.rows.keys}
    fields = tuple(replace(field, is_key=field.slot in own) for field in fields)
    return Rows(True, fields, None, tuple(field for field in fields if field.is_key), joined=True)


def _named_key(rows: Rows, key_type: pa.DataType) -> Rows:
    """Give a key that no column equals a generated name."""
    if rows.stand_ins:
        return rows
    taken = {field.name for field in rows.fields}
    name, count = ROWKEY, 0
    while name in taken:
        count += 1
        name = f"{ROWKEY}_{count}"
    key = Field(name, "", key_type, is_key=True)
    return replace(rows, fields=(key, *rows.fields), keys=(key,))


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


def check_key_type(one: Side, other: Side, condition: ast.Binary) -> None:
    """Check that both sides have the same type, which a key can have."""
    if one.key.type != other.key.type:
        raise SqlTypeError(
            f"cannot join {type_name(one.key.type)} with {type_name(other.key.type)}",
            hint=f"write CAST({show(one.condition)} AS {type_name(other.key.type)}) on the side that is not a key",
            location=condition.at,
        )
    if _holds_map(one.key.type):
        hint = "join by an entry: ON a.column['name'] = b.column['name']"
        raise Refused(
            f"cannot join by {type_name(one.key.type)}: a key cannot hold a map", hint=hint, location=condition.at
        )


def _holds_map(type_: pa.DataType) -> bool:
    inner = [type_.field(index).type for index in range(type_.num_fields)]
    return pa.types.is_map(type_) or any(map(_holds_map, inner))


def check_windows(one: Side, other: Side, clause: ast.Join) -> None:
    """Check that both sides have the same windows: windowed keys are compared as a whole."""
    windows = one.rows.window, other.rows.window
    if windows == (None, None):
        return
    rendered = " and ".join(_windowed(side) for side in (one, other))
    if None in windows:
        hint = f"join sources that both have windows, or none: {rendered}"
        raise Refused("a windowed source cannot be joined with one without windows", hint=hint, location=clause.at)
    if windows[0] != windows[1]:
        hint = f"the windows must be of the same kind and size: {rendered}"
        raise Refused("sources with different windows cannot be joined", hint=hint, location=clause.at)
    for side in (one, other):
        if not side.is_own_key:
            keys = ", ".join(quoted(field.name) for field in side.rows.keys)
            hint = f"join a windowed source by its key: {keys}"
            raise Refused("a windowed source cannot get another key", hint=hint, location=side.condition.at)


def _windowed(side: Side) -> str:
    names, window = " and ".join(side.rows.sources), side.rows.window
    return f"{names} has {_kind(window)}" if window is not None else f"{names} has none"


def _kind(window: WindowShape) -> str:
    size = "" if window.size_ms is None else f" of {window.size_ms} ms"
    return f"{window.kind} windows{size}"


def check_primary_key(side: Side) -> None:
    if not side.is_own_key:
        keys = ", ".join(quoted(field.name) for field in side.rows.keys)
        raise Refused(
            f"{show(side.condition)} is not the primary key of its table",
            hint=f"a table is joined by its primary key: {keys}",
            location=side.condition.at,
        )

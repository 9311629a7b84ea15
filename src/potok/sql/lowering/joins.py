"""Joins: both sides under one key, then one row of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from potok.duration import days
from potok.expressions.columnar import JOINED
from potok.expressions.computed import Computed
from potok.expressions.expr import Column, Expr, StructExpr, TupleExpr
from potok.expressions.function import Function
from potok.records.schema import Schema
from potok.sql.catalog import Catalog
from potok.sql.errors import Refused, TypeMistake
from potok.sql.expressions.check import check
from potok.sql.expressions.rename import rename
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.lowering.computing import Pick, expr_of, function_for, struct_of
from potok.sql.lowering.graph import Graph
from potok.sql.lowering.scope import Field, Rows, RowScope
from potok.sql.syntax import ast
from potok.sql.syntax.text import show
from potok.sql.syntax.walk import names_of
from potok.sql.types import quoted, type_name
from potok.topology.nodes import (
    ForeignJoin,
    ForeignKey,
    ForeignMatch,
    JoinKind,
    JoinWindow,
    Map,
    MapValues,
    StreamJoin,
    TableJoin,
    TableLookup,
    TableMapValues,
)

DEFAULT_GRACE_MS = int(days(1).total_seconds() * 1000)
ROWKEY = "ROWKEY"
_KINDS = {
    ast.JoinKind.INNER: JoinKind.INNER,
    ast.JoinKind.LEFT: JoinKind.LEFT,
    ast.JoinKind.RIGHT: JoinKind.LEFT,
    ast.JoinKind.FULL: JoinKind.OUTER,
}


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: its rows, and what of them must equal the other side's."""

    rows: Rows
    condition: ast.Expression
    key: Typed

    @property
    def is_own_key(self) -> bool:
        """Whether the rows have this key already."""
        keys = self.rows.keys
        return (
            self.rows.window is None
            and len(keys) == 1
            and isinstance(self.key, ColumnRef)
            and self.key.column == keys[0].slot
        )


def join(graph: Graph, catalog: Catalog, left: Rows, right: Rows, clause: ast.Join) -> Rows:
    """The rows of a join under the key that both sides have."""
    for rows in (left, right):
        if rows.is_table and rows.window is not None:
            hint = "its rows have a key and a window; join the stream before it is cut into windows"
            raise Refused("a table with windows cannot be joined", hint=hint, place=clause.at)
    sides = _sides(catalog, left, right, clause)
    swapped = clause.kind is ast.JoinKind.RIGHT
    first, second = (sides[1], sides[0]) if swapped else sides
    if not left.is_table and not right.is_table:
        return _streams(graph, first, second, clause)
    if clause.within is not None:
        hint = "leave it out: the table's row of the moment is taken"
        raise Refused("WITHIN is for joins of two streams", hint=hint, place=clause.within.at)
    if first.rows.is_table and second.rows.is_table:
        return _tables(graph, first, second, clause)
    return _lookup(graph, first, second, clause)


def _sides(catalog: Catalog, left: Rows, right: Rows, clause: ast.Join) -> tuple[Side, Side]:
    condition = clause.condition
    if not isinstance(condition, ast.Binary) or condition.op != "=":
        hint = f"write ON a.column = b.column, not {show(condition)}"
        raise Refused("a join needs one equality", hint=hint, place=condition.at)
    both = {**dict.fromkeys(left.sources, left), **dict.fromkeys(right.sources, right)}
    found: dict[int, Side] = {}
    for part in (condition.left, condition.right):
        rows = _rows_of(part, left, right, both)
        found[id(rows)] = Side(rows, part, check(part, RowScope(rows, catalog.types)))
    if len(found) < 2:
        hint = "compare a column of the one source with a column of the other"
        raise Refused("both sides of the condition are of the same source", hint=hint, place=condition.at)
    one, other = found[id(left)], found[id(right)]
    if one.key.type != other.key.type:
        raise TypeMistake(
            f"cannot join {type_name(one.key.type)} with {type_name(other.key.type)}",
            hint=f"write CAST({show(one.condition)} AS {type_name(other.key.type)}) on the side that is no key",
            place=condition.at,
        )
    return one, other


def _rows_of(part: ast.Expression, left: Rows, right: Rows, both: Mapping[str, Rows]) -> Rows:
    for name in names_of(part):
        if name.source in both:
            return both[name.source]
        if left.find(name.name, name.source) and not right.find(name.name, name.source):
            return left
        if right.find(name.name, name.source):
            return right
    hint = "each side of the equality names a column of one source"
    raise Refused(f"{show(part)} is of neither side of the join", hint=hint, place=part.at)


def _streams(graph: Graph, left: Side, right: Side, clause: ast.Join) -> Rows:
    within = clause.within
    if within is None:
        hint = "say how far apart the records may be: JOIN ... WITHIN 1 HOUR ON ..."
        raise Refused("a join of two streams needs WITHIN", hint=hint, place=clause.at)
    how = _KINDS[clause.kind]
    before, after = within.before_ms, within.after_ms
    if clause.kind is ast.JoinKind.RIGHT:
        before, after = after, before
    grace = within.grace_ms
    if grace is None:
        grace = DEFAULT_GRACE_MS if how is JoinKind.INNER else 0
    prepared = [_keyed_stream(graph, side) for side in (left, right)]
    name = graph.name_of(prepared[0].node, f"join.{prepared[1].node.name}")
    joiner = _joiner(*prepared)
    node = StreamJoin(name, None, prepared[0].node, prepared[1].node, how, JoinWindow(before, after, grace), joiner)
    return _joined(graph.add(node), left, right, prepared, clause.kind, is_table=False)


def _lookup(graph: Graph, first: Side, second: Side, clause: ast.Join) -> Rows:
    if first.rows.is_table or clause.kind is ast.JoinKind.FULL:
        hint = "the stream keeps the result going: FROM stream LEFT JOIN table, or INNER JOIN"
        raise Refused(
            f"a stream and a table have no {clause.kind.value} JOIN this way round", hint=hint, place=clause.at
        )
    _must_be_key(second)
    prepared = [_keyed_stream(graph, first), _table_side(graph, second)]
    name = graph.name_of(prepared[0].node, f"join.{prepared[1].node.name}")
    node = TableLookup(name, None, prepared[0].node, prepared[1].node, _KINDS[clause.kind], _joiner(*prepared))
    return _joined(graph.add(node), first, second, prepared, clause.kind, is_table=False)


def _tables(graph: Graph, first: Side, second: Side, clause: ast.Join) -> Rows:
    _must_be_key(second)
    prepared = [_table_side(graph, first), _table_side(graph, second)]
    how, joiner = _KINDS[clause.kind], _joiner(*prepared)
    name = graph.name_of(prepared[0].node, f"join.{prepared[1].node.name}")
    schema = Schema.of(_expr(joiner).type)
    if first.is_own_key:
        table = TableJoin(name, None, prepared[0].node, prepared[1].node, how, joiner, schema)
        return _joined(graph.add(table), first, second, prepared, clause.kind, is_table=True)
    if how is JoinKind.OUTER:
        hint = "join by the primary keys of both, or use LEFT JOIN"
        raise Refused("a join by a foreign key has no FULL JOIN", hint=hint, place=clause.at)
    foreign = expr_of(_moved(first.key, first.rows, prepared[0]), prepared[0])
    key = graph.add(ForeignKey(f"{name}.foreign_key", None, prepared[0].node, function_for(foreign), how))
    match = graph.add(ForeignMatch(f"{name}.match", None, key, prepared[1].node, how, joiner, schema))
    node = graph.add(ForeignJoin(name, None, match))
    rows = _joined(node, first, second, prepared, clause.kind, is_table=True)
    keys = prepared[0].keys
    fields = tuple(replace(f, is_key=False) if f not in keys else f for f in rows.fields if f.name != ROWKEY)
    kept = tuple(_at_key(field, keys, len(keys)) for field in fields)
    return replace(rows, fields=kept, keys=tuple(f for f in kept if f.is_key))


def _at_key(field: Field, keys: tuple[Field, ...], count: int) -> Field:
    """The fields of the left table's own key are found in the key."""
    for key in keys:
        if (key.name, key.source) == (field.name, field.source):
            path = (field.name,) if count > 1 else ()
            return replace(field, at=Column(field.type, "key", path), is_key=True)
    return replace(field, is_key=False)


def _must_be_key(side: Side) -> None:
    if not side.is_own_key:
        keys = ", ".join(quoted(field.name) for field in side.rows.keys)
        raise Refused(
            f"{show(side.condition)} is not the primary key of its table",
            hint=f"a table is joined by its primary key: {keys}",
            place=side.condition.at,
        )


def packed_name(field: Field) -> str:
    """Quoted where it must be, so that no two columns share a name, whatever their sources are called."""
    return f"{quoted(field.source)}.{quoted(field.name)}" if field.source else field.name


def _packed(rows: Rows) -> tuple[StructExpr, tuple[Field, ...]]:
    """All columns of a side in one struct, under names that tell whose they are."""
    items: list[tuple[str, Expr]] = []
    fields: list[Field] = []
    for field in rows.fields:
        name = packed_name(field)
        items.append((name, Computed(field.type, (field.at,), Pick(), quoted(field.name))))
        fields.append(replace(field, at=Column(field.type, "value", (name,)), is_key=False))
    return struct_of(items), tuple(fields)


def _keyed_stream(graph: Graph, side: Side) -> Rows:
    value, fields = _packed(side.rows)
    node = side.rows.node
    if side.is_own_key:
        mapped = graph.add(MapValues(graph.name_of(node, "select"), None, node, function_for(value)))
        return replace(side.rows, node=mapped, fields=fields)
    key = expr_of(side.key, side.rows)
    pair = TupleExpr(pa.struct([("0", key.type), ("1", value.type)]), (key, value))
    moved = graph.add(Map(graph.name_of(node, "select"), None, node, function_for(pair)))
    return replace(side.rows, node=moved, fields=fields)


def _table_side(graph: Graph, side: Side) -> Rows:
    value, fields = _packed(side.rows)
    node = side.rows.node
    mapped = graph.add(TableMapValues(graph.name_of(node, "select"), None, node, function_for(value)))
    return replace(side.rows, node=mapped, fields=fields)


def _moved(expression: Typed, before: Rows, after: Rows) -> Typed:
    """An expression over columns that have another place by now."""
    places = {old.slot: new.slot for old, new in zip(before.fields, after.fields, strict=True)}
    return rename(expression, places.__getitem__)


@dataclass(frozen=True, slots=True)
class Packing:
    """A struct of the fields of both sides; those of a side that is missing are null. Called with single rows too."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    type: pa.DataType

    def __call__(self, columns: Any, rows: int) -> pa.Array:
        return pa.StructArray.from_arrays(list(columns), fields=list(self.type))


@dataclass(frozen=True, slots=True)
class PackRow:
    left: tuple[str, ...]
    right: tuple[str, ...]

    def __call__(self, key: Any, left: Any, right: Any) -> dict[str, Any]:
        row = dict.fromkeys((*self.left, *self.right))
        for side in (left, right):
            if side is not None:
                row.update(side)
        return row


def _joiner(left: Rows, right: Rows) -> Function:
    args: list[Column] = []
    fields: list[pa.Field] = []
    names: list[tuple[str, ...]] = []
    for side, rows in (("left", left), ("right", right)):
        names.append(tuple(field.at.path[0] for field in rows.fields))
        args += [Column(field.type, side, field.at.path) for field in rows.fields]
        fields += [pa.field(field.at.path[0], field.type) for field in rows.fields]
    packing = Packing(names[0], names[1], pa.struct(fields))
    expr = Computed(packing.type, tuple(args), packing, "both")
    return Function(PackRow(*names), len(JOINED), name="both", expr=expr)


def _expr(function: Function) -> Expr:
    assert function.expr is not None
    return function.expr


def _joined(node: Any, first: Side, second: Side, prepared: list[Rows], kind: ast.JoinKind, *, is_table: bool) -> Rows:
    """The columns of both sides; what was joined by is the key."""
    keyed = _key_fields(first, second, kind)
    fields = [
        replace(field, at=Column(field.type, "key"), is_key=True) if field in keyed else field
        for rows in prepared
        for field in rows.fields
    ]
    keys = [field for field in fields if field.is_key]
    if not keys:
        keys = [Field(ROWKEY, "", first.key.type, Column(first.key.type, "key"), is_key=True)]
        fields = [*keys, *fields]
    return Rows(node, is_table, tuple(fields), None, tuple(keys[:1]), joined=True)


def _key_fields(first: Side, second: Side, kind: ast.JoinKind) -> list[Field]:
    """The columns that equal the key in every row: that of the side that is always there."""
    if kind is ast.JoinKind.FULL:
        return []
    sides = (first, second) if kind is ast.JoinKind.INNER else (first,)
    found: list[Field] = []
    for side in sides:
        if isinstance(side.key, ColumnRef):
            at = next(field for field in side.rows.fields if field.slot == side.key.column)
            found.append(replace(at, at=Column(at.type, "value", (packed_name(at),)), is_key=False))
    return found

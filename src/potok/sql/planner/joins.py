"""Joins: both sides under one key, then one row of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from potok.duration import days
from potok.expressions.columnar import JOINED
from potok.expressions.computed import Computed
from potok.expressions.expr import Column, Expr, StructExpr, TupleExpr
from potok.expressions.failures import RowFailures
from potok.expressions.function import Function
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.sql.analysis.joins import How, JoinAnalysis
from potok.sql.analysis.scope import Field
from potok.sql.expressions.typed import Typed
from potok.sql.planner.column_positions import NOW, LocatedRows
from potok.sql.planner.computing import Pick, expr_of, function_for, struct_of
from potok.sql.planner.graph import Graph
from potok.sql.syntax import ast
from potok.sql.types import quoted
from potok.topology.nodes import (
    ForeignJoin,
    ForeignKey,
    ForeignMatch,
    JoinKind,
    JoinWindow,
    Map,
    MapValues,
    Node,
    StreamJoin,
    TableJoin,
    TableLookup,
    TableMapValues,
)

DEFAULT_GRACE_MS = int(days(1).total_seconds() * 1000)
_KINDS = {
    ast.JoinKind.INNER: JoinKind.INNER,
    ast.JoinKind.LEFT: JoinKind.LEFT,
    ast.JoinKind.RIGHT: JoinKind.LEFT,
    ast.JoinKind.FULL: JoinKind.OUTER,
}


def join(graph: Graph, left: LocatedRows, right: LocatedRows, found: JoinAnalysis) -> LocatedRows:
    """The rows of a join under the key that both sides have."""
    if found.how is How.STREAMS:
        return _streams(graph, left, right, found)
    if found.how is How.LOOKUP:
        return _lookup(graph, left, right, found)
    return _tables(graph, left, right, found)


def _streams(graph: Graph, left: LocatedRows, right: LocatedRows, found: JoinAnalysis) -> LocatedRows:
    within = found.within
    assert within is not None
    how = _KINDS[found.kind]
    before, after = within.before_ms, within.after_ms
    packed = (
        keyed_stream(graph, left, found.left[0], by_key=found.left_by_key),
        keyed_stream(graph, right, found.right[0], by_key=found.right_by_key),
    )
    first, second = _preserved_first(packed, found.kind)
    if found.kind is ast.JoinKind.RIGHT:
        before, after = after, before
    grace = within.grace_ms
    if grace is None:
        grace = DEFAULT_GRACE_MS if how is JoinKind.INNER else 0
    window, function = JoinWindow(before, after, grace), joiner_of(first, second)
    name = _name(graph, first, second)
    node = StreamJoin(name, None, first.node, second.node, how, window, function, keeps_headers=True)
    return _joined(graph.add(node), packed, found)


def _lookup(graph: Graph, left: LocatedRows, right: LocatedRows, found: JoinAnalysis) -> LocatedRows:
    packed = keyed_stream(graph, left, found.left[0], by_key=found.left_by_key), table_side(graph, right)
    stream, table = packed
    function = joiner_of(stream, table)
    node = TableLookup(_name(graph, stream, table), None, stream.node, table.node, _KINDS[found.kind], function)
    return _joined(graph.add(node), packed, found)


def _tables(graph: Graph, left: LocatedRows, right: LocatedRows, found: JoinAnalysis) -> LocatedRows:
    packed = table_side(graph, left), table_side(graph, right)
    first, second = _preserved_first(packed, found.kind)
    name, function = _name(graph, first, second), joiner_of(first, second)
    how, schema = _KINDS[found.kind], _schema(function)
    if found.how is How.TABLES:
        table = TableJoin(name, None, first.node, second.node, how, function, schema, every_update=True)
        return _joined(graph.add(table), packed, found)
    foreign = function_for(expr_of(found.left[0], first))
    key = graph.add(ForeignKey(f"{name}.foreign_key", None, first.node, foreign, how))
    match = graph.add(ForeignMatch(f"{name}.match", None, key, second.node, how, function, schema, every_update=True))
    return _joined(graph.add(ForeignJoin(name, None, match)), packed, found)


def _preserved_first(packed: tuple[LocatedRows, LocatedRows], kind: ast.JoinKind) -> tuple[LocatedRows, LocatedRows]:
    """Return the preserved side of a LEFT or RIGHT JOIN, and the other one."""
    return (packed[1], packed[0]) if kind is ast.JoinKind.RIGHT else packed


def _name(graph: Graph, first: LocatedRows, second: LocatedRows) -> str:
    return graph.name_of(first.node, f"join.{second.node.name}")


def _schema(function: Function) -> Schema:
    assert function.expr is not None
    schema = declared_schema(function.expr.type)
    assert schema is not None
    return schema


def _joined(node: Node, packed: tuple[LocatedRows, LocatedRows], found: JoinAnalysis) -> LocatedRows:
    """Return the columns of both sides: those of the key are there, all others in the value."""
    left, right = packed
    path = () if found.rows.window is None else ("key",)
    keys = [field for field in found.rows.fields if field.is_key]
    several = len(keys) > 1
    in_key = {field.slot: Column(field.type, "key", (*path, field.name) if several else path) for field in keys}
    return LocatedRows(node, found.rows, {**right.at, **left.at, **in_key})


def packed_name(field: Field) -> str:
    """Qualify a name, with quotes where needed, so that no two columns share a name."""
    return f"{quoted(field.source)}.{quoted(field.name)}" if field.source else field.name


def _packed(side: LocatedRows) -> tuple[StructExpr, dict[str, Column]]:
    """Pack all columns of a side into one struct, under qualified names. A generated key is left out: it has no name
    after the next join."""
    items: list[tuple[str, Expr]] = []
    positions: dict[str, Column] = {}
    names = {field.slot: (packed_name(field), field.name) for field in side.fields if field.source}
    if NOW in side.at:
        names[NOW] = (f"{quoted(side.rows.sources[-1])}.{NOW}", NOW)
    for slot, (name, rendered) in names.items():
        at = side.at[slot]
        items.append((name, Computed(at.type, (at,), Pick(), quoted(rendered))))
        positions[slot] = Column(at.type, "value", (name,))
    return struct_of(items), positions


def keyed_stream(graph: Graph, side: LocatedRows, key: Typed, *, by_key: bool) -> LocatedRows:
    """Return the packed columns of a stream under the key of the join; `by_key` says that the records have it."""
    value, positions = _packed(side)
    name = graph.name_of(side.node, "select")
    if by_key:
        return LocatedRows(graph.add(MapValues(name, None, side.node, function_for(value))), side.rows, positions)
    expr = expr_of(key, side)
    pair = TupleExpr(pa.struct([("0", expr.type), ("1", value.type)]), (expr, value))
    return LocatedRows(graph.add(Map(name, None, side.node, function_for(pair))), side.rows, positions)


def table_side(graph: Graph, side: LocatedRows) -> LocatedRows:
    value, positions = _packed(side)
    node = TableMapValues(graph.name_of(side.node, "select"), None, side.node, function_for(value))
    return LocatedRows(graph.add(node), side.rows, positions)


@dataclass(frozen=True, slots=True)
class Packing:
    """Combine the structs of both sides; the fields of a missing side are null. Also called with single rows."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    type: pa.DataType

    def __call__(self, columns: Any, rows: int, failures: RowFailures) -> pa.Array:
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


def joiner_of(left: LocatedRows, right: LocatedRows) -> Function:
    args: list[Column] = []
    names: list[tuple[str, ...]] = []
    for side, rows in (("left", left), ("right", right)):
        names.append(tuple(at.path[0] for at in rows.at.values()))
        args += [Column(at.type, side, at.path) for at in rows.at.values()]
    packing = Packing(names[0], names[1], pa.struct([(arg.path[0], arg.type) for arg in args]))
    expr = Computed(packing.type, tuple(args), packing, "both")
    return Function(PackRow(*names), len(JOINED), name="both", expr=expr)

"""Joins: both sides under one key, then one row of both."""

from __future__ import annotations

from potok.duration import days
from potok.expressions.expr import Column
from potok.expressions.function import Function
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.sql.analysis.joins import How, JoinAnalysis
from potok.sql.planner.column_positions import LocatedRows
from potok.sql.planner.computing import expr_of, function_for
from potok.sql.planner.graph import Graph
from potok.sql.planner.join_sides import joiner_of, keyed_stream, table_side
from potok.sql.syntax import ast
from potok.topology.nodes import (
    ForeignJoin,
    ForeignKey,
    ForeignMatch,
    JoinKind,
    JoinWindow,
    Node,
    StreamJoin,
    TableJoin,
    TableLookup,
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

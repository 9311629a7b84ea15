"""Joins: both sides under one key, then one row of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from potok.duration import days
from potok.expressions.expr import Column
from potok.expressions.function import Function
from potok.records.schema import Schema
from potok.sql.catalog import Catalog, Source, WindowShape
from potok.sql.errors import Place, Refused, TypeMistake
from potok.sql.expressions.check import check
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.lowering.computing import expr_of, function_for
from potok.sql.lowering.graph import Graph
from potok.sql.lowering.join_sides import Side, joiner_of, keyed_stream, table_side
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
    Node,
    StreamJoin,
    TableJoin,
    TableLookup,
)

DEFAULT_GRACE_MS = int(days(1).total_seconds() * 1000)
ROWKEY = "ROWKEY"
_KINDS = {
    ast.JoinKind.INNER: JoinKind.INNER,
    ast.JoinKind.LEFT: JoinKind.LEFT,
    ast.JoinKind.RIGHT: JoinKind.LEFT,
    ast.JoinKind.FULL: JoinKind.OUTER,
}
_KAFKA = "kafka"


def check_formats(sources: Sequence[Source], clause: str, place: Place | None) -> None:
    """Refuse sources with the value format KAFKA, as ksqlDB does."""
    bare = [source for source in sources if source.value_format.partition(";")[0] == _KAFKA]
    if bare:
        names = ", ".join(quoted(source.name) for source in bare)
        hint = "declare the value in another format, such as JSON or DELIMITED"
        raise Refused(f"the value format KAFKA of {names} does not support {clause}", hint=hint, place=place)


def join(graph: Graph, catalog: Catalog, left: Rows, right: Rows, clause: ast.Join) -> Rows:
    """The rows of a join under the key that both sides have."""
    sides = _sides(catalog, _without_synthetic_key(left), right, clause)
    one, other = sides
    _check_windows(one, other, clause)
    if not left.is_table and not right.is_table:
        return _streams(graph, one, other, clause)
    if left.is_table and not right.is_table:
        hint = "write the stream first: FROM stream LEFT JOIN table, or INNER JOIN"
        raise Refused("a table cannot be joined with a stream", hint=hint, place=clause.at)
    if clause.within is not None:
        hint = "leave it out: the table's row of the moment is taken"
        raise Refused("WITHIN is for joins of two streams", hint=hint, place=clause.within.at)
    _must_be_key(other)
    return _tables(graph, one, other, clause) if left.is_table else _lookup(graph, one, other, clause)


def _without_synthetic_key(rows: Rows) -> Rows:
    """Drop the generated key of an earlier join, which has no name after the next one."""
    return replace(rows, fields=tuple(field for field in rows.fields if field.source))


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
    if _holds_map(one.key.type):
        hint = "join by an entry: ON a.column['name'] = b.column['name']"
        raise Refused(
            f"cannot join by {type_name(one.key.type)}: a key cannot hold a map", hint=hint, place=condition.at
        )
    return one, other


def _holds_map(type_: pa.DataType) -> bool:
    inner = [type_.field(index).type for index in range(type_.num_fields)]
    return pa.types.is_map(type_) or any(map(_holds_map, inner))


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


def _check_windows(one: Side, other: Side, clause: ast.Join) -> None:
    """Check that both sides have the same windows: windowed keys are compared as a whole."""
    windows = one.rows.window, other.rows.window
    if windows == (None, None):
        return
    shown = " and ".join(_windowed(side) for side in (one, other))
    if None in windows:
        hint = f"join sources that both have windows, or none: {shown}"
        raise Refused("a windowed source cannot be joined with one without windows", hint=hint, place=clause.at)
    if windows[0] != windows[1]:
        hint = f"the windows must be of the same kind and size: {shown}"
        raise Refused("sources with different windows cannot be joined", hint=hint, place=clause.at)
    for side in (one, other):
        if not side.is_own_key:
            keys = ", ".join(quoted(field.name) for field in side.rows.keys)
            hint = f"join a windowed source by its key: {keys}"
            raise Refused("a windowed source cannot get another key", hint=hint, place=side.condition.at)


def _windowed(side: Side) -> str:
    names, window = " and ".join(side.rows.sources), side.rows.window
    return f"{names} has {_kind(window)}" if window is not None else f"{names} has none"


def _kind(window: WindowShape) -> str:
    size = "" if window.size_ms is None else f" of {window.size_ms} ms"
    return f"{window.kind} windows{size}"


def _streams(graph: Graph, one: Side, other: Side, clause: ast.Join) -> Rows:
    within = clause.within
    if within is None:
        hint = "say how far apart the records may be: JOIN ... WITHIN 1 HOUR ON ..."
        raise Refused("a join of two streams needs WITHIN", hint=hint, place=clause.at)
    how = _KINDS[clause.kind]
    before, after = within.before_ms, within.after_ms
    packed = keyed_stream(graph, one), keyed_stream(graph, other)
    first, second = _preserved_first(packed, clause)
    if clause.kind is ast.JoinKind.RIGHT:
        before, after = after, before
    grace = within.grace_ms
    if grace is None:
        grace = DEFAULT_GRACE_MS if how is JoinKind.INNER else 0
    window, function = JoinWindow(before, after, grace), joiner_of(first, second)
    name = _name(graph, first, second)
    node = StreamJoin(name, None, first.node, second.node, how, window, function, keeps_headers=True)
    return _joined(graph.add(node), one, other, packed, clause.kind, is_table=False)


def _lookup(graph: Graph, one: Side, other: Side, clause: ast.Join) -> Rows:
    if clause.kind not in (ast.JoinKind.INNER, ast.JoinKind.LEFT):
        hint = "write FROM stream LEFT JOIN table, or INNER JOIN: only records of the stream produce results"
        raise Refused(f"a stream and a table do not support {clause.kind.value} JOIN", hint=hint, place=clause.at)
    packed = keyed_stream(graph, one), table_side(graph, other)
    left, right = packed
    function = joiner_of(left, right)
    node = TableLookup(_name(graph, left, right), None, left.node, right.node, _KINDS[clause.kind], function)
    return _joined(graph.add(node), one, other, packed, clause.kind, is_table=False)


def _tables(graph: Graph, one: Side, other: Side, clause: ast.Join) -> Rows:
    packed = table_side(graph, one), table_side(graph, other)
    first, second = _preserved_first(packed, clause)
    name, function = _name(graph, first, second), joiner_of(first, second)
    if one.is_own_key:
        how, schema = _KINDS[clause.kind], _schema(function)
        table = TableJoin(name, None, first.node, second.node, how, function, schema, every_update=True)
        return _joined(graph.add(table), one, other, packed, clause.kind, is_table=True)
    return _foreign(graph, one, packed, clause, name, function)


def _foreign(
    graph: Graph, one: Side, packed: tuple[Rows, Rows], clause: ast.Join, name: str, function: Function
) -> Rows:
    """Join the rows of the left table with those they refer to, under the key of the left table."""
    left, right = packed
    if clause.kind not in (ast.JoinKind.INNER, ast.JoinKind.LEFT):
        hint = "join by the primary keys of both, or use LEFT JOIN"
        raise Refused(f"a foreign-key join does not support {clause.kind.value} JOIN", hint=hint, place=clause.at)
    how, schema = _KINDS[clause.kind], _schema(function)
    foreign = function_for(expr_of(one.moved(one.key, left), left))
    key = graph.add(ForeignKey(f"{name}.foreign_key", None, left.node, foreign, how))
    match = graph.add(ForeignMatch(f"{name}.match", None, key, right.node, how, function, schema, every_update=True))
    node = graph.add(ForeignJoin(name, None, match))
    fields = (*left.fields, *right.fields)
    if one.rows.joined and not any(field.is_key for field in one.rows.fields):
        equal = tuple(one.moved(expression, left) for expression in one.rows.equal)
        type_ = (*(expression.type for expression in equal), *(field.type for field in one.rows.keys))[0]
        return _named_key(Rows(node, True, fields, None, joined=True, equal=equal), type_)
    names = {(field.name, field.source) for field in one.rows.keys}
    several = len(names) > 1
    placed = tuple(
        replace(field, at=Column(field.type, "key", (field.name,) if several else ()), is_key=True)
        if (field.name, field.source) in names
        else field
        for field in fields
    )
    keys = tuple(field for field in placed if field.is_key)
    return Rows(node, True, placed, None, keys, joined=True)


def _preserved_first(packed: tuple[Rows, Rows], clause: ast.Join) -> tuple[Rows, Rows]:
    """Return the preserved side of a LEFT or RIGHT JOIN, and the other one."""
    return (packed[1], packed[0]) if clause.kind is ast.JoinKind.RIGHT else packed


def _name(graph: Graph, first: Rows, second: Rows) -> str:
    return graph.name_of(first.node, f"join.{second.node.name}")


def _schema(function: Function) -> Schema:
    assert function.expr is not None
    schema = Schema.of(function.expr.type)
    assert schema is not None
    return schema


def _must_be_key(side: Side) -> None:
    if not side.is_own_key:
        keys = ", ".join(quoted(field.name) for field in side.rows.keys)
        raise Refused(
            f"{show(side.condition)} is not the primary key of its table",
            hint=f"a table is joined by its primary key: {keys}",
            place=side.condition.at,
        )


def _joined(
    node: Node, one: Side, other: Side, packed: tuple[Rows, Rows], kind: ast.JoinKind, *, is_table: bool
) -> Rows:
    """Return the columns of both sides, left ones first, under the key of the join."""
    left, right = packed
    equal: tuple[Typed, ...] = ()
    if kind is not ast.JoinKind.FULL:
        equal = tuple(dict.fromkeys((*one.equal_to_key(left), *other.equal_to_key(right))))
    sides = {
        ast.JoinKind.INNER: ((one, left), (other, right)),
        ast.JoinKind.LEFT: ((one, left),),
        ast.JoinKind.RIGHT: ((other, right),),
        ast.JoinKind.FULL: (),
    }
    certain = [side.moved(side.key, rows) for side, rows in sides[kind]]
    fields = (*left.fields, *right.fields)
    slots = [expression.column for expression in certain if isinstance(expression, ColumnRef)]
    keys = tuple(field for field in fields if field.slot in slots[:1])
    rows = Rows(node, is_table, fields, one.rows.window, keys, joined=True, equal=equal)
    return _named_key(rows, one.key.type)


def _named_key(rows: Rows, key_type: pa.DataType) -> Rows:
    """Build the joined rows; a key that no column equals gets a generated name."""
    if rows.stand_ins:
        return rows
    at = Column(key_type, "key", () if rows.window is None else ("key",))
    key = Field(_unused({field.name for field in rows.fields}), "", key_type, at, is_key=True)
    return replace(rows, fields=(key, *rows.fields), keys=(key,))


def _unused(taken: set[str]) -> str:
    name, count = ROWKEY, 0
    while name in taken:
        count += 1
        name = f"{ROWKEY}_{count}"
    return name

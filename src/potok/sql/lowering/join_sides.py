"""The sides of a join: the key of each, and its columns packed into one struct under qualified names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from potok.expressions.columnar import JOINED
from potok.expressions.computed import Computed
from potok.expressions.expr import Column, Expr, StructExpr, TupleExpr
from potok.expressions.function import Function
from potok.sql.expressions.rename import rename
from potok.sql.expressions.typed import ColumnRef, Typed
from potok.sql.lowering.computing import Pick, expr_of, function_for, struct_of
from potok.sql.lowering.graph import Graph
from potok.sql.lowering.scope import Field, Rows
from potok.sql.syntax import ast
from potok.sql.types import quoted
from potok.topology.nodes import Map, MapValues, TableMapValues


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

    def equal_to_key(self, packed: Rows) -> tuple[Typed, ...]:
        """The packed columns that equal the key of the join."""
        if self.is_own_key and self.rows.equal:
            return tuple(self.moved(expression, packed) for expression in self.rows.equal)
        return (self.moved(self.key, packed),)

    def moved(self, expression: Typed, packed: Rows) -> Typed:
        """Rewrite an expression over the columns of this side to one over the packed columns."""
        places = {old.slot: new.slot for old, new in zip(self.rows.fields, packed.fields, strict=True)}
        return rename(expression, places.__getitem__)


def _is_same(one: Typed, other: Typed) -> bool:
    if isinstance(one, ColumnRef) and isinstance(other, ColumnRef):
        return one.column == other.column
    return one == other


def packed_name(field: Field) -> str:
    """Qualify a name, with quotes where needed, so that no two columns share a name."""
    return f"{quoted(field.source)}.{quoted(field.name)}" if field.source else field.name


def _packed(rows: Rows) -> tuple[StructExpr, tuple[Field, ...]]:
    """Pack all columns of a side into one struct, under qualified names."""
    items: list[tuple[str, Expr]] = []
    fields: list[Field] = []
    for field in rows.fields:
        name = packed_name(field)
        items.append((name, Computed(field.type, (field.at,), Pick(), quoted(field.name))))
        fields.append(replace(field, at=Column(field.type, "value", (name,)), is_key=False))
    return struct_of(items), tuple(fields)


def keyed_stream(graph: Graph, side: Side) -> Rows:
    value, fields = _packed(side.rows)
    node = side.rows.node
    if side.is_own_key:
        mapped = graph.add(MapValues(graph.name_of(node, "select"), None, node, function_for(value)))
        return replace(side.rows, node=mapped, fields=fields)
    key = expr_of(side.key, side.rows)
    pair = TupleExpr(pa.struct([("0", key.type), ("1", value.type)]), (key, value))
    moved = graph.add(Map(graph.name_of(node, "select"), None, node, function_for(pair)))
    return replace(side.rows, node=moved, fields=fields)


def table_side(graph: Graph, side: Side) -> Rows:
    value, fields = _packed(side.rows)
    node = side.rows.node
    mapped = graph.add(TableMapValues(graph.name_of(node, "select"), None, node, function_for(value)))
    return replace(side.rows, node=mapped, fields=fields)


@dataclass(frozen=True, slots=True)
class Packing:
    """Combine the structs of both sides; the fields of a missing side are null. Also called with single rows."""

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


def joiner_of(left: Rows, right: Rows) -> Function:
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

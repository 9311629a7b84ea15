"""The sides of a join: the key of each, and its columns packed into one struct under qualified names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from potok.expressions.columnar import JOINED
from potok.expressions.computed import Computed
from potok.expressions.expr import Column, Expr, StructExpr, TupleExpr
from potok.expressions.failures import RowFailures
from potok.expressions.function import Function
from potok.sql.analysis.scope import Field
from potok.sql.expressions.typed import Typed
from potok.sql.planner.column_positions import NOW, LocatedRows
from potok.sql.planner.computing import Pick, expr_of, function_for, struct_of
from potok.sql.planner.graph import Graph
from potok.sql.types import quoted
from potok.topology.nodes import Map, MapValues, TableMapValues


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
    for slot, (name, shown) in names.items():
        at = side.at[slot]
        items.append((name, Computed(at.type, (at,), Pick(), quoted(shown))))
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

"""Groups and their aggregates as steps: merged as columns where all aggregates allow it, folded otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from potok.expressions.computed import Computed
from potok.expressions.expr import Column, Expr, TupleExpr
from potok.expressions.failures import RowFailures
from potok.expressions.function import Function
from potok.records.schemas.declared_schema import declared_schema
from potok.sql.analysis.grouping import Aggregated, Grouping, grouped_rows
from potok.sql.analysis.scope import WINDOW_BOUNDS
from potok.sql.catalog import WindowShape
from potok.sql.expressions.typed import ColumnRef, columns_of
from potok.sql.functions.function import Fold, Part
from potok.sql.planner.column_positions import LocatedRows
from potok.sql.planner.computing import Pick, expr_of, function_for, key_expr, struct_of
from potok.sql.planner.graph import Graph
from potok.sql.syntax.lexer.text import show
from potok.sql.types import BIGINT
from potok.topology.nodes import (
    Aggregate,
    AggregatePart,
    Aggregation,
    Map,
    MapValues,
    Node,
    SelectKey,
    TableAggregate,
    TableGroup,
    TableMapValues,
    Window,
)


def aggregate(
    graph: Graph, rows: LocatedRows, grouping: Grouping, window: Window | None, shape: WindowShape | None, name: str
) -> LocatedRows:
    """Return the groups as a table: the grouping expressions in the key, a field for each aggregate in the value."""
    if rows.rows.is_table:
        node = _table_groups(graph, rows, grouping, name)
    elif all(item.how.parts for item in grouping.aggregates):
        node = _merged(graph, rows, grouping, window, name)
    else:
        node = _folded(graph, rows, grouping, window, name)
    return LocatedRows(node, grouped_rows(grouping, shape), _column_positions(grouping, shape))


def _column_positions(grouping: Grouping, shape: WindowShape | None) -> dict[str, Column]:
    path: tuple[str, ...] = () if shape is None else ("key",)
    several = len(grouping.keys) > 1
    positions = {
        f"group.{name}": Column(typed.type, "key", (*path, name) if several else path) for name, typed in grouping.keys
    }
    if shape is not None:
        for bound, part in zip(WINDOW_BOUNDS, ("start", "end"), strict=True):
            positions[f"window.{bound}"] = Column(BIGINT, "key", (part,))
    for item in grouping.aggregates:
        positions[f"aggregate.{item.name}"] = Column(item.how.result, "value", (item.name,))
    return positions


def is_plain(item: Aggregated) -> bool:
    """Whether the merged parts are already the result."""
    parts = item.how.parts
    return len(parts) == 1 and item.how.finish is None and parts[0].type == item.how.result


def _grouped(graph: Graph, rows: LocatedRows, grouping: Grouping, values: Expr | None) -> Node:
    """Return the records under the key of their group, with other values if needed."""
    wanted = [typed.column if isinstance(typed, ColumnRef) else "" for _, typed in grouping.keys]
    key = key_expr([(name, expr_of(typed, rows)) for name, typed in grouping.keys])
    keys = rows.rows.keys
    same = rows.rows.window is None and wanted == [field.slot for field in keys]
    if len(grouping.keys) > 1 and [name for name, _ in grouping.keys] != [field.name for field in keys]:
        same = False
    if values is None:
        if same:
            return rows.node
        return graph.add(SelectKey(graph.name_of(rows.node, "group_by"), None, rows.node, function_for(key)))
    if same:
        return graph.add(MapValues(graph.name_of(rows.node, "select"), None, rows.node, function_for(values)))
    pair = TupleExpr(pa.struct([("0", key.type), ("1", values.type)]), (key, values))
    return graph.add(Map(graph.name_of(rows.node, "group_by"), None, rows.node, function_for(pair)))


def _argument_name(item: Aggregated, index: int) -> str:
    return f"{item.name}_{index}"


def _arguments(rows: LocatedRows, grouping: Grouping) -> Expr:
    items = [
        (_argument_name(item, index), expr_of(argument, rows))
        for item in grouping.aggregates
        for index, argument in enumerate(item.arguments)
    ]
    # A struct has at least one field.
    return struct_of(items or [("NOTHING", Computed(pa.bool_(), (), Nothing(), "NULL"))])


@dataclass(frozen=True, slots=True)
class Nothing:
    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        return pa.nulls(rows, pa.bool_())


@dataclass(frozen=True, slots=True)
class NoKey:
    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        return pa.nulls(rows, pa.string())


@dataclass(frozen=True, slots=True)
class PartColumn:
    """The input of a part of an aggregate from each record: `spans` select the columns of its arguments."""

    part: Part
    arguments: tuple[Computed, ...]
    args: tuple[Column, ...]

    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        given = dict(zip(self.args, columns, strict=True))
        computed = [
            argument.compute([given[arg] for arg in argument.args], rows, failures) for argument in self.arguments
        ]
        assert self.part.compute is not None
        return self.part.compute(computed, rows)


def _merged(graph: Graph, rows: LocatedRows, grouping: Grouping, window: Window | None, name: str) -> Node:
    read = {column for item in grouping.aggregates for argument in item.arguments for column in columns_of(argument)}
    moved = not read.isdisjoint(rows.key_slots)
    if moved:
        # The key changes here, so the parts of it that aggregates read are added to the value.
        upstream = _grouped(graph, rows, grouping, _arguments(rows, grouping))
    else:
        upstream = _grouped(graph, rows, grouping, None)
    parts: list[AggregatePart] = []
    for item in grouping.aggregates:
        arguments = _part_arguments(item, rows, moved=moved)
        for index, part in enumerate(item.how.parts):
            field = item.name if is_plain(item) else f"{item.name}_{index}"
            function = None
            if part.compute is not None:
                args = tuple(dict.fromkeys(arg for argument in arguments for arg in argument.args))
                column = Computed(part.type, args, PartColumn(part, arguments, args), show(item.call))
                function = function_for(column)
            parts.append(AggregatePart(field, part.op, part.type, function, part.initial))
    finished = all(map(is_plain, grouping.aggregates))
    step = name if finished else f"{name}.parts"
    aggregation = Aggregation("fold", parts=tuple(parts))
    node = graph.add(Aggregate(step, None, upstream, aggregation, window))
    return node if finished else _finish_parts(graph, node, grouping, name)


def _part_arguments(item: Aggregated, rows: LocatedRows, *, moved: bool) -> tuple[Computed, ...]:
    if not moved:
        found = [expr_of(argument, rows) for argument in item.arguments]
        return tuple(expr for expr in found if isinstance(expr, Computed))
    return tuple(
        Computed(a.type, (Column(a.type, "value", (_argument_name(item, i),)),), Pick(), str(a))
        for i, a in enumerate(item.arguments)
    )


@dataclass(frozen=True, slots=True)
class Finished:
    """Computes the results of aggregates from their merged parts."""

    aggregates: tuple[tuple[Any, pa.DataType, int], ...]
    """`finish`, the type of the result, and the number of parts."""
    type: pa.DataType

    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        made, at = [], 0
        for finish, type_, count in self.aggregates:
            given, at = columns[at : at + count], at + count
            made.append(given[0].cast(type_) if finish is None else finish(given, rows, type_))
        return pa.StructArray.from_arrays(made, fields=list(self.type))


def _finish_parts(graph: Graph, node: Node, grouping: Grouping, name: str) -> Node:
    args: list[Column] = []
    how: list[tuple[Any, pa.DataType, int]] = []
    for item in grouping.aggregates:
        for index, part in enumerate(item.how.parts):
            field = item.name if is_plain(item) else f"{item.name}_{index}"
            args.append(Column(part.type, "value", (field,)))
        how.append((item.how.finish, item.how.result, len(item.how.parts)))
    type_ = pa.struct([(item.name, item.how.result) for item in grouping.aggregates])
    text = ", ".join(show(item.call) for item in grouping.aggregates)
    expr = Computed(type_, tuple(args), Finished(tuple(how), type_), text)
    return graph.add(TableMapValues(f"{name}.finish", None, node, function_for(expr)))


@dataclass(frozen=True, slots=True, eq=False)
class Folding:
    """Adds a record to the states of several aggregates, or removes one."""

    folds: tuple[tuple[Any, tuple[str, ...]], ...]

    def __call__(self, value: Any, states: Any) -> Any:
        return [
            change(state, *(value[name] for name in names))
            for state, (change, names) in zip(states, self.folds, strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Starting:
    folds: tuple[Fold, ...]

    def __call__(self) -> Any:
        return [fold.start() for fold in self.folds]


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """Computes the results of several aggregates from their states."""

    folds: tuple[tuple[str, Fold], ...]

    def __call__(self, states: Any) -> Any:
        return {name: fold.result(state) for state, (name, fold) in zip(states, self.folds, strict=True)}


def _folds(grouping: Grouping) -> tuple[Fold, ...]:
    return tuple(item.how.fold for item in grouping.aggregates)


def _fold_of(grouping: Grouping, *, undo: bool = False) -> Function:
    names = [tuple(_argument_name(a, i) for i in range(len(a.arguments))) for a in grouping.aggregates]
    changes = [fold.undo if undo else fold.add for fold in _folds(grouping)]
    text = ", ".join(show(item.call) for item in grouping.aggregates)
    return Function(Folding(tuple(zip(changes, names, strict=True))), 2, name=text)


def _aggregation(grouping: Grouping) -> Aggregation:
    start = Starting(_folds(grouping))
    by_offset = any(fold.order_dependent for fold in _folds(grouping))
    return Aggregation("fold", _fold_of(grouping), start(), Function(start, 0, name="start"), by_offset=by_offset)


def _folded(graph: Graph, rows: LocatedRows, grouping: Grouping, window: Window | None, name: str) -> Node:
    upstream = _grouped(graph, rows, grouping, _arguments(rows, grouping))
    node = graph.add(Aggregate(f"{name}.states", None, upstream, _aggregation(grouping), window))
    return _ended(graph, node, grouping, name)


def _ended(graph: Graph, node: Node, grouping: Grouping, name: str) -> Node:
    ending = Ending(tuple((item.name, item.how.fold) for item in grouping.aggregates))
    schema = declared_schema(pa.struct([(item.name, item.how.result) for item in grouping.aggregates]))
    return graph.add(TableMapValues(f"{name}.finish", None, node, Function(ending, 1, name="results"), schema))


def _table_groups(graph: Graph, rows: LocatedRows, grouping: Grouping, name: str) -> Node:
    key = key_expr([(key_name, expr_of(typed, rows)) for key_name, typed in grouping.keys])
    values = _arguments(rows, grouping)
    pair = TupleExpr(pa.struct([("0", key.type), ("1", values.type)]), (key, values))
    groups = graph.add(
        TableGroup(
            graph.name_of(rows.node, "group_by"), None, rows.node, function_for(pair), pairs=True, every_update=True
        )
    )
    subtractor = _fold_of(grouping, undo=True)
    aggregation, states = _aggregation(grouping), f"{name}.states"
    node = TableAggregate(states, None, groups, aggregation, subtractor, keeps_empty=True, every_update=True)
    graph.add(node)
    return _ended(graph, node, grouping, name)


def renamed(grouping: Grouping, names: dict[str, str]) -> Grouping:
    """Return the same groups with other names for the aggregates."""
    items = tuple(replace(item, name=names.get(item.name, item.name)) for item in grouping.aggregates)
    return replace(grouping, aggregates=items)

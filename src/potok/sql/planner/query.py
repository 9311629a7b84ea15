"""Plan an analysed SELECT as a topology: FROM, JOIN, WHERE, GROUP BY, HAVING, SELECT, in this order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from potok.expressions.computed import Computed
from potok.expressions.expr import Column, Expr, TupleExpr
from potok.sql.analysis.form import Form
from potok.sql.analysis.grouping import Grouping
from potok.sql.analysis.projection import Projection, project
from potok.sql.analysis.relations import RelationAnalysis
from potok.sql.analysis.scope import PSEUDO, ROWTIME
from potok.sql.analysis.select import Analysis, is_group
from potok.sql.analysis.table_functions import table_calls
from potok.sql.catalog import SourceColumn, WindowShape
from potok.sql.expressions.typed import Typed, columns_of
from potok.sql.planner.aggregates import NoKey, aggregate, is_plain, renamed
from potok.sql.planner.column_positions import NOW, LocatedRows
from potok.sql.planner.computing import expr_of, function_for, key_expr, struct_of
from potok.sql.planner.explode import explode
from potok.sql.planner.graph import Graph
from potok.sql.planner.joins import join
from potok.sql.planner.row_patterns import match_rows
from potok.sql.planner.sources import source_rows
from potok.sql.properties import INVALID_TIMESTAMPS, NO_PROPERTIES, Properties
from potok.sql.syntax import ast
from potok.sql.syntax.walk import calls_of, names_of
from potok.sql.types import BIGINT
from potok.topology.nodes import Filter, Map, MapValues, Node, Suppress, TableFilter, TableMapValues

OF_THE_PRESENT = ("UNIX_TIMESTAMP", "UNIX_DATE")
"""Functions that default to the time of the batch."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The result of a query: its last step and its columns."""

    node: Node
    is_table: bool
    columns: tuple[SourceColumn, ...]
    window: WindowShape | None = None
    key: Expr | None = None
    """The key of the result of a table, if its column names differ from those of the table."""


def lower(graph: Graph, analysis: Analysis, name: str, properties: Properties = NO_PROPERTIES) -> Selected:
    """Add the steps of a query to a topology. `name` is the name of the last one."""
    return _Lowering(graph, analysis, name, properties).lower()


class _Lowering:
    def __init__(self, graph: Graph, analysis: Analysis, name: str, properties: Properties) -> None:
        self._graph, self._analysis, self._name, self._properties = graph, analysis, name, properties
        self._query = analysis.query

    def lower(self) -> Selected:
        found = self._analysis
        projection = project(found)
        rows = self._from()
        if found.where is not None:
            rows = self._filtered(rows, found.where)
        if found.grouping is not None:
            return self._final(self._grouped(rows, found.grouping, projection))
        rows = explode(self._graph, rows, found.lists)
        return self._partitioned(rows, projection) if projection.repartitioned else self._selected(rows, projection)

    def _from(self) -> LocatedRows:
        sources = [self._source(relation) for relation in self._analysis.relations]
        rows = sources[0]
        for right, found in zip(sources[1:], self._analysis.joins, strict=True):
            rows = join(self._graph, rows, right, found)
        return rows

    def _source(self, relation: RelationAnalysis) -> LocatedRows:
        source, alias = relation.source, relation.alias
        outer = _without_matches(self._query)
        if relation.match is not None:
            timed = any(n.name == ROWTIME and n.source in ("", alias) for n in names_of(outer))
            return match_rows(self._graph, relation, relation.match, self._name, self._properties, timed=timed)
        # A table that occurs several times in a query is stored once, with the pseudo columns of all occurrences.
        wanted = {n.name for n in names_of(outer) if n.name in PSEUDO and (source.is_table or n.source in ("", alias))}
        present = any(c.name in OF_THE_PRESENT and not c.arguments for c in calls_of(self._query))
        return source_rows(
            self._graph,
            source,
            alias,
            wanted | ({NOW} if present else set()),
            relation.relation.at,
            skips_null=not self._passes_null(),
            strict_times=self._properties.flag(INVALID_TIMESTAMPS),
        )

    def _passes_null(self) -> bool:
        """Return whether records without a value are passed on, as in ksqlDB: only if the query merely copies them."""
        query, written = self._query, self._analysis.form is Form.PERSISTENT
        return written and not (query.where or query.joins or query.group_by or table_calls(query))

    def _filtered(self, rows: LocatedRows, condition: Typed) -> LocatedRows:
        function, name = function_for(expr_of(condition, rows)), self._graph.name_of(rows.node, "filter")
        if rows.rows.is_table:
            return rows.with_node(self._graph.add(TableFilter(name, None, rows.node, function)))
        return rows.with_node(self._graph.add(Filter(name, None, rows.node, function)))

    # Groups

    def _grouped(self, rows: LocatedRows, grouping: Grouping, projection: Projection) -> Selected:
        window, shape = self._analysis.window, self._analysis.shape
        plain = self._plain_names(grouping)
        if plain is not None:
            grouping = renamed(grouping, plain)
            grouped = aggregate(self._graph, rows, grouping, window, shape, self._name)
            columns = [SourceColumn(name, typed.type, is_key=True) for name, typed in grouping.keys]
            columns += [SourceColumn(a.name, a.how.result) for a in grouping.aggregates]
            return Selected(grouped.node, True, tuple(columns), shape)
        grouped = aggregate(self._graph, rows, grouping, window, shape, f"{self._name}.groups")
        if self._analysis.having is not None:
            function = function_for(expr_of(self._analysis.having, grouped))
            node = TableFilter(f"{self._name}.having", None, grouped.node, function)
            grouped = grouped.with_node(self._graph.add(node))
        return self._selected(grouped, projection)

    def _plain_names(self, grouping: Grouping) -> dict[str, str] | None:
        """Return the names of aggregates that are result columns unchanged; None if there is more to compute."""
        found = self._analysis
        if found.having is not None or found.rows.is_table or not all(map(is_plain, grouping.aggregates)):
            return None
        by_call = {aggregate.call: aggregate.name for aggregate in grouping.aggregates}
        keys = [name for name, _ in grouping.keys]
        names: dict[str, str] = {}
        seen: list[str] = []
        for item in found.items:
            if isinstance(item.expression, ast.Call) and item.expression in by_call:
                names[by_call[item.expression]] = item.name
            elif item.name in keys and is_group(item, found):
                seen.append(item.name)
            else:
                return None
        every = len(names) == len(grouping.aggregates) == len(found.items) - len(keys) and sorted(seen) == sorted(keys)
        shows_bounds = found.window is not None and found.form is Form.PUSH
        return names if every and grouping.aggregates and not shows_bounds else None

    def _final(self, selected: Selected) -> Selected:
        if self._query.emit is not ast.Emit.FINAL:
            return selected
        node = self._graph.add(Suppress(f"{self._name}.final", None, selected.node))
        return replace(selected, node=node)

    # Projections

    def _selected(self, rows: LocatedRows, projection: Projection) -> Selected:
        """Return rows that keep their key."""
        value, key = self._value(rows, projection), _renamed_key(rows, projection)
        is_table = rows.rows.is_table
        node = self._mapped(rows, key, value)
        return Selected(node, is_table, projection.columns, rows.rows.window, key if is_table else None)

    def _value(self, rows: LocatedRows, projection: Projection) -> Expr:
        return struct_of([(name, expr_of(typed, rows)) for name, typed in projection.values])

    def _mapped(self, rows: LocatedRows, key: Expr | None, value: Expr) -> Node:
        if rows.rows.is_table:
            return self._graph.add(TableMapValues(self._name, None, rows.node, function_for(value), kept=True))
        name = self._graph.name_of(rows.node, "map_values")
        if key is not None:
            return self._remapped(rows, key, value, name)
        return self._graph.add(MapValues(name, None, rows.node, function_for(value), null_stays=True))

    def _remapped(
        self, rows: LocatedRows, key: Expr, value: Expr, name: str, *, value_parts: tuple[int, ...] = ()
    ) -> Node:
        pair = TupleExpr(pa.struct([("0", key.type), ("1", value.type)]), (key, value))
        node = Map(name, None, rows.node, function_for(pair), null_stays=True, value_parts=value_parts)
        return self._graph.add(node)

    def _partitioned(self, rows: LocatedRows, projection: Projection) -> Selected:
        """Return rows under another key, or without one."""
        name, value = self._graph.name_of(rows.node, "map"), self._value(rows, projection)
        if not projection.keys:
            none = Computed(pa.string(), (), NoKey(), "NULL")
            return Selected(self._remapped(rows, none, value, name), False, projection.columns)
        key = key_expr([(part, expr_of(typed, rows)) for part, typed in projection.keys], partial=True)
        of_values = {slot for slot, at in rows.at.items() if at.name == "value"}
        from_value = tuple(
            index for index, (_, typed) in enumerate(projection.keys) if not of_values.isdisjoint(columns_of(typed))
        )
        return Selected(self._remapped(rows, key, value, name, value_parts=from_value), False, projection.columns)


def _without_matches(query: ast.Select) -> ast.Select:
    """Return a query without MATCH_RECOGNIZE, whose names are those of other rows."""
    joins = tuple(replace(join, relation=replace(join.relation, match=None)) for join in query.joins)
    return replace(query, relation=replace(query.relation, match=None), joins=joins)


def _renamed_key(rows: LocatedRows, projection: Projection) -> Expr | None:
    """Rename the key to the columns of the result; None if unchanged. A single column has no name in a key."""
    positions = [rows.at[slot] for slot in rows.key_slots]
    if rows.rows.window is not None:
        positions = [at for at in positions if at.path not in (("start",), ("end",))]
    names = [at.path[-1] if at.path else "" for at in positions]
    keys = projection.keys
    if len(keys) < 2 or len(keys) != len(positions) or names == [name for name, _ in keys]:
        return None
    key = struct_of([(name, expr_of(typed, rows)) for name, typed in keys])
    if rows.rows.window is None:
        return key
    return struct_of([("key", key), *((part, Column(BIGINT, "key", (part,))) for part in ("start", "end"))])

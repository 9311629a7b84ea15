"""MATCH_RECOGNIZE as steps: rows under the key of their partition, in the order of time, then their matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.expressions.computed import Computed
from potok.expressions.expr import Column, Expr, TupleExpr
from potok.expressions.failures import RowFailures
from potok.sql.analysis.relations import RelationAnalysis
from potok.sql.analysis.scope import PSEUDO, ROWTIME
from potok.sql.expressions.typed import ColumnRef, columns_of
from potok.sql.planner.aggregates import Nothing
from potok.sql.planner.column_positions import LocatedRows
from potok.sql.planner.computing import expr_of, function_for, key_expr, struct_of
from potok.sql.planner.graph import Graph
from potok.sql.planner.sources import ABOUT, source_rows
from potok.sql.properties import INVALID_TIMESTAMPS, Properties
from potok.sql.row_patterns.analyse import MatchAnalysis
from potok.sql.row_patterns.measures import FILLER
from potok.sql.syntax import ast
from potok.sql.types import BIGINT
from potok.topology.nodes import Annotate, Map, MapValues, Match, Node, Ordered

MAX_RUNS = 10_000


@dataclass(frozen=True, slots=True)
class OneKey:
    """The key of rows that are not partitioned."""

    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        return pa.repeat(pa.scalar("", pa.string()), rows)


def match_rows(
    graph: Graph, relation: RelationAnalysis, match: MatchAnalysis, name: str, properties: Properties, *, timed: bool
) -> LocatedRows:
    """Return the rows of MATCH_RECOGNIZE; `timed` says that the query reads their time."""
    clause = match.clause
    given = source_rows(
        graph,
        relation.source,
        relation.relation.row_alias or relation.relation.name,
        {field.name for field in match.read if field.name in PSEUDO} | _pseudo_of_ties(match),
        relation.relation.at,
        strict_times=properties.flag(INVALID_TIMESTAMPS),
    )
    keyed = _keyed(graph, given, match)
    step = graph.name_of(f"{name}.match", "")
    ordered = graph.add(Ordered(f"{step}.ordered", None, keyed, clause.grace_ms or 0))
    node: Node = graph.add(
        Match(
            step,
            None,
            ordered,
            match.pattern,
            match.after,
            MAX_RUNS,
            match.output,
            match.shifts,
            match.ties,
            match.numbered,
            clause.rows is ast.RowsPerMatch.UNMATCHED,
            clause.timeouts,
        )
    )
    several = len(match.partition) > 1
    positions: dict[str, Column] = {}
    keys = {field.name for field in match.partition}
    for field in relation.fields:
        if field.name in keys:
            positions[field.slot] = Column(field.type, "key", (field.name,) if several else ())
        elif field.name != ROWTIME:
            positions[field.slot] = Column(field.type, "value", (field.name,))
        elif timed:
            positions[field.slot] = Column(BIGINT, "value", (ROWTIME,))
    if timed:
        node = graph.add(Annotate(graph.name_of(node, "annotate"), None, node, ((ROWTIME, ABOUT[ROWTIME]),)))
    return LocatedRows(node, relation.rows, positions)


def _pseudo_of_ties(match: MatchAnalysis) -> set[str]:
    slots = {column for _, typed in match.tie_expressions for column in columns_of(typed)}
    return {field.name for field in match.rows.fields if field.slot in slots and field.name in PSEUDO}


def _keyed(graph: Graph, given: LocatedRows, match: MatchAnalysis) -> Node:
    """Return rows under the key of their partition, with the columns that the pattern reads."""
    items: list[tuple[str, Expr]] = [
        (field.name, expr_of(ColumnRef(field.type, field.slot), given)) for field in match.read
    ]
    items += [(name, expr_of(typed, given)) for name, typed in match.tie_expressions]
    value = struct_of(items or [(FILLER, Computed(pa.bool_(), (), Nothing(), "NULL"))])
    wanted = [field.slot for field in match.partition]
    if wanted and wanted == [field.slot for field in match.rows.keys]:
        name = graph.name_of(given.node, "select")
        return graph.add(MapValues(name, None, given.node, function_for(value)))
    parts = [(field.name, expr_of(ColumnRef(field.type, field.slot), given)) for field in match.partition]
    key = key_expr(parts, partial=True) if parts else Computed(pa.string(), (), OneKey(), "()")
    pair = TupleExpr(pa.struct([("0", key.type), ("1", value.type)]), (key, value))
    return graph.add(Map(graph.name_of(given.node, "partition_by"), None, given.node, function_for(pair)))

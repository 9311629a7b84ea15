"""Find the records that a table is made of, for joins with past versions of its rows."""

from __future__ import annotations

from potok.dsl.graph_builder import GraphBuilder
from potok.errors import Location
from potok.topology.nodes import (
    HistoryFilter,
    HistoryMapValues,
    Node,
    TableFilter,
    TableMapValues,
    TableRecords,
    TableSource,
    ToTable,
)


def history_of(graph: GraphBuilder, table: Node, name: str, at: Location | None) -> Node:
    """Return the records that a table is made of. Return the table itself if its rows are computed from several
    records or expire.

    A table emits one change per row and batch; a join with past versions needs every record.
    """
    if isinstance(table, TableSource | ToTable) and table.lifetime.ttl_ms is not None:
        return table
    if isinstance(table, ToTable):
        return table.upstream
    if isinstance(table, TableSource):
        return _added(graph, TableRecords(graph.step_name(None, f"{name}.history"), at, table))
    if isinstance(table, TableFilter | TableMapValues):
        upstream = history_of(graph, table.upstream, name, at)
        if upstream.is_table:
            return table
        step = graph.step_name(None, f"{name}.history")
        if isinstance(table, TableFilter):
            return _added(graph, HistoryFilter(step, at, upstream, table.predicate, table.negate))
        return _added(graph, HistoryMapValues(step, at, upstream, table.function, table.schema))
    return table


def retained_history_ms(table: Node) -> int | None:
    """Return how long a table keeps the versions of its rows; None if it keeps no versions."""
    if isinstance(table, TableFilter | TableMapValues):
        return retained_history_ms(table.upstream)
    return table.lifetime.history_ms if isinstance(table, TableSource | ToTable) else None


def _added(graph: GraphBuilder, node: Node) -> Node:
    graph.add(node)
    return node

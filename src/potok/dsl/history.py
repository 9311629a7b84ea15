"""The records behind a table, for those who want its rows as they were."""

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
    """The records that a table is made of, or the table itself where its rows are computed from several records, or
    end by themselves.

    A table tells one change per row and batch; whoever looks back needs every record.
    """
    if isinstance(table, TableSource | ToTable) and table.lifetime.ttl_ms is not None:
        return table
    if isinstance(table, ToTable):
        return table.upstream
    if isinstance(table, TableSource):
        return _added(graph, TableRecords(graph.step_name("", f"{name}.history"), at, table))
    if isinstance(table, TableFilter | TableMapValues):
        upstream = history_of(graph, table.upstream, name, at)
        if upstream.is_table:
            return table
        step = graph.step_name("", f"{name}.history")
        if isinstance(table, TableFilter):
            return _added(graph, HistoryFilter(step, at, upstream, table.predicate, table.negate))
        return _added(graph, HistoryMapValues(step, at, upstream, table.function, table.schema))
    return table


def kept_history_ms(table: Node) -> int | None:
    """How far back a table goes that keeps versions of its rows; None if it does not."""
    if isinstance(table, TableFilter | TableMapValues):
        return kept_history_ms(table.upstream)
    return table.lifetime.history_ms if isinstance(table, TableSource | ToTable) else None


def _added(graph: GraphBuilder, node: Node) -> Node:
    graph.add(node)
    return node

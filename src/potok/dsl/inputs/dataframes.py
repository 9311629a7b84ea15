"""Add a table that is loaded from a DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from potok.dsl.graph_builder import GraphBuilder
from potok.dsl.inputs.serdes import serde_of, timestamps_of
from potok.duration import Duration, to_ms
from potok.errors import Location, TopologyError
from potok.topology.nodes import TableSource
from potok.topology.nodes.sources import Refresh


def add_dataframe(
    graph: GraphBuilder,
    query: str,
    name: str,
    load: Callable[[Any], Any],
    key: str,
    types: tuple[object, object],
    refresh: Duration | None,
    topic: str | None,
    at: Location | None,
) -> TableSource:
    """Add the table, whose topic the driver writes."""
    if not callable(load):
        raise TopologyError("load= is not a function", hint="write load=lambda spark: spark.read...", at=at)
    interval_ms = None if refresh is None else to_ms(refresh)
    if interval_ms is not None and interval_ms <= 0:
        raise TopologyError(
            "refresh= is not a positive duration", hint='write refresh="10 min", or leave it out', at=at
        )
    node = TableSource(
        name,
        at,
        topic or f"{query}-{name}-dataframe",
        serde_of(types[0], None, at),
        serde_of(types[1], "json", at),
        timestamps_of(None, None, None, at),
        refresh=Refresh(load, key, interval_ms),
    )
    graph.add(node)
    return node

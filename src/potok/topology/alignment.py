"""Which topics are read in timestamp order across their partitions, because joins and merges depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from potok.topology.graph import Topology
from potok.topology.nodes import (
    Aggregate,
    HistoryLookup,
    Merge,
    Node,
    StreamJoin,
    StreamSource,
    TableFilter,
    TableLookup,
    TableMapValues,
    TableSource,
    ToTable,
)
from potok.topology.nodes.sources import TimeNotion


@dataclass(frozen=True, slots=True)
class AlignedTopics:
    """Topics whose records are read in timestamp order, as Kafka Streams reads those of a task.

    Records are ordered by the greatest timestamp so far in their partition, then `tables` first (topics that only feed
    the table side of lookups), then by topic, partition and offset.
    """

    topics: frozenset[str]
    tables: frozenset[str]

    def to_json(self) -> dict[str, Any]:
        return {"topics": sorted(self.topics), "tables": sorted(self.tables)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> AlignedTopics:
        return cls(frozenset(data["topics"]), frozenset(data["tables"]))


def aligned_topics(topology: Topology) -> tuple[AlignedTopics, ...]:
    """Return disjoint groups of topics that are combined by a lookup, a stream-stream join or a merge.

    Topics without event time are excluded: their records are in the order in which they arrive.
    """
    timeless = {source.topic for source in topology.sources if source.timestamps.notion is not TimeNotion.EVENT}
    groups: list[frozenset[str]] = []
    for node in topology:
        if isinstance(node, TableLookup | HistoryLookup | StreamJoin | Merge):
            group = frozenset(topology.upstream_topics(node)) - timeless
            touching = [other for other in groups if other & group]
            groups = [other for other in groups if not other & group] + [group.union(*touching)]
    tables = lookup_only_topics(topology)
    found = [AlignedTopics(group, group & tables) for group in groups if group]
    return tuple(sorted(found, key=lambda aligned: sorted(aligned.topics)))


def lookup_only_topics(topology: Topology) -> frozenset[str]:
    """Return the topics that feed the table side of lookups, but no stream side."""
    lookups = [node for node in topology if isinstance(node, TableLookup | HistoryLookup)]
    tables = frozenset[str]().union(*(topology.upstream_topics(node.table) for node in lookups))
    return tables.difference(*(_topics_of_records(node.stream) for node in lookups))


def _topics_of_records(node: Node) -> frozenset[str]:
    """Return the topics whose records a step processes, without those of the tables that they join."""
    if isinstance(node, StreamSource | TableSource):
        return frozenset({node.topic})
    ways = (node.stream,) if isinstance(node, TableLookup | HistoryLookup) else node.upstreams
    return frozenset[str]().union(*map(_topics_of_records, ways))


def tables_looked_up(topology: Topology) -> frozenset[Node]:
    """Return the tables that must emit each change, because a lookup needs the row as of each record."""
    found: set[Node] = set()
    for lookup in topology.of_type(TableLookup):
        table = lookup.table
        while isinstance(table, TableFilter | TableMapValues):
            table = table.upstream
        if isinstance(table, TableSource | ToTable | Aggregate):
            found.add(table)
    return frozenset(found)

"""Find the topics that are read only after a table is loaded."""

from __future__ import annotations

from collections.abc import Mapping

from potok.errors import Location, TopologyError
from potok.topology.graph import Topology
from potok.topology.nodes import HistoryLookup, TableLookup


class WaitsForItself(TopologyError):
    """Topics that wait for each other, so that none would be read."""

    def __init__(self, topics: set[str], at: Location | None) -> None:
        names = ", ".join(f'"{topic}"' for topic in sorted(topics))
        super().__init__(
            f"nothing would ever be read of {names}: the stream feeds the table that it waits for",
            hint="leave wait_for_table=True out of this join",
            at=at,
        )


def waiting_topics(topology: Topology) -> dict[str, set[str]]:
    """Return, for each topic of a stream that waits, the topics of the tables it waits for."""
    waits: dict[str, set[str]] = {}
    for node in topology:
        if isinstance(node, TableLookup | HistoryLookup) and node.wait_for_table:
            for topic in topology.upstream_topics(node.stream):
                waits.setdefault(topic, set()).update(topology.upstream_topics(node.table))
            if stuck := _stuck(waits):
                raise WaitsForItself(stuck, node.at)
    return waits


def _stuck(waits: Mapping[str, set[str]]) -> set[str]:
    """Return the topics that wait for each other in a cycle, and those that wait for them."""
    left = dict(waits)
    while free := {topic for topic, others in left.items() if not others & left.keys()}:
        left = {topic: others for topic, others in left.items() if topic not in free}
    return set(left)

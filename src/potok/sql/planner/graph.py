"""Collects the nodes of a query, and names its steps as the DSL would."""

from __future__ import annotations

from typing import TypeVar

from potok.topology.graph import Topology
from potok.topology.nodes import Node

N = TypeVar("N", bound=Node)


class Graph:
    """The growing topology of one query."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[Node] = []

    def add(self, node: N) -> N:
        self._nodes.append(node)
        return node

    def name_of(self, upstream: Node | str, verb: str) -> str:
        """A name for a step behind another; steps that would share one are counted."""
        base = upstream if isinstance(upstream, str) else upstream.name
        derived = f"{base}.{verb}" if verb else base
        taken = {node.name for node in self._nodes}
        name, count = derived, 2
        while name in taken:
            name, count = f"{derived}-{count}", count + 1
        return name

    def known(self, kind: type[N], topic: str) -> N | None:
        """The source of a topic, if the query reads it already."""
        return next((n for n in self._nodes if isinstance(n, kind) and getattr(n, "topic", None) == topic), None)

    def topology(self) -> Topology:
        return Topology(self.name, tuple(self._nodes))

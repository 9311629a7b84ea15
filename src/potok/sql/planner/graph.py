"""Collect the nodes of a query, and name its steps as the DSL does."""

from __future__ import annotations

from typing import TypeVar

from potok.topology.graph import Topology
from potok.topology.nodes import Node

N = TypeVar("N", bound=Node)


class Graph:
    """The topology of one query while it is built."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[Node] = []

    def add(self, node: N) -> N:
        self._nodes.append(node)
        return node

    def name_of(self, upstream: Node | str, verb: str) -> str:
        """Return a unique name for a step after another."""
        base = upstream if isinstance(upstream, str) else upstream.name
        derived = f"{base}.{verb}" if verb else base
        taken = {node.name for node in self._nodes}
        name, count = derived, 2
        while name in taken:
            name, count = f"{derived}-{count}", count + 1
        return name

    def known(self, kind: type[N], topic: str) -> N | None:
        """Return the source of a topic, if the query already reads it."""
        return next((n for n in self._nodes if isinstance(n, kind) and getattr(n, "topic", None) == topic), None)

    def topology(self) -> Topology:
        return Topology(self.name, tuple(self._nodes))

"""Collects the nodes of a topology while its handles are being chained."""

from __future__ import annotations

from potok.errors import Location
from potok.topology.graph import Topology
from potok.topology.nodes import Node


class GraphBuilder:
    """The growing list of nodes behind one builder and all its handles."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[Node] = []
        self._names: set[str] = set()
        self._counted: set[str] = set()

    def add(self, node: Node) -> None:
        self._nodes.append(node)
        self._names.add(node.name)

    def step_name(self, given: str, derived: str) -> str:
        """The given name, or the derived one made unique: only steps without state may be told apart by a count."""
        if given:
            return given
        name, count = derived, 2
        while name in self._names:
            name, count = f"{derived}-{count}", count + 1
        if name != derived:
            self._counted.add(name)
        return name

    def is_counted(self, name: str) -> bool:
        """Whether a name, or the path that leads to it, was told apart by a count."""
        return any(name == counted or name.startswith(f"{counted}.") for counted in self._counted)

    def topology(self) -> Topology:
        return Topology(self.name, tuple(self._nodes))


calling_location = Location.of_caller

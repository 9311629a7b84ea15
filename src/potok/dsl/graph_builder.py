"""Collect the nodes of a topology while its handles are chained."""

from __future__ import annotations

from potok.dsl.handle_classes import HandleClasses
from potok.errors import Location
from potok.topology.graph import Topology
from potok.topology.nodes import Node


class GraphBuilder:
    """The growing list of nodes behind one builder and all its handles."""

    def __init__(self, name: str, classes: HandleClasses) -> None:
        self.name = name
        self.classes = classes
        self._nodes: list[Node] = []
        self._names: set[str] = set()
        self._counted: set[str] = set()

    def add(self, node: Node) -> None:
        self._nodes.append(node)
        self._names.add(node.name)

    def step_name(self, given: str | None, derived: str) -> str:
        """Return the given name, or the derived name made unique by a count, which a step with state must not have."""
        if given:
            return given
        name, count = derived, 2
        while name in self._names:
            name, count = f"{derived}-{count}", count + 1
        if name != derived:
            self._counted.add(name)
        return name

    def is_counted(self, name: str) -> bool:
        """Return whether a name, or a name that it is derived from, contains a count."""
        return any(name == counted or name.startswith(f"{counted}.") for counted in self._counted)

    def topology(self) -> Topology:
        return Topology(self.name, tuple(self._nodes))


calling_location = Location.of_caller

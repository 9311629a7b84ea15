"""Collect the nodes of a topology while its handles are chained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from potok.errors import Location
from potok.topology.capture import Capture
from potok.topology.graph import Topology
from potok.topology.nodes import Node

if TYPE_CHECKING:
    from potok.dsl.grouping.grouped_stream import GroupedStream
    from potok.dsl.grouping.grouped_table import GroupedTable
    from potok.dsl.grouping.matched_stream import MatchedStream
    from potok.dsl.processed_stream import ProcessedStream
    from potok.dsl.stream import Stream


@dataclass(frozen=True, slots=True)
class HandleClasses:
    """The handle classes that methods of other handles return.

    A stream has methods that return tables, and a table has methods that return streams, so their modules cannot all
    import each other. The builder passes the classes to its graph, where a handle finds those that it cannot import.
    """

    stream: type[Stream[Any, Any]]
    grouped_stream: type[GroupedStream[Any, Any]]
    grouped_table: type[GroupedTable[Any, Any]]
    matched_stream: type[MatchedStream[Any, Any]]
    processed_stream: type[ProcessedStream[Any, Any]]


class GraphBuilder:
    """The growing list of nodes behind one builder and all its handles."""

    def __init__(self, name: str, classes: HandleClasses) -> None:
        self.name = name
        self.classes = classes
        self._nodes: list[Node] = []
        self._names: set[str] = set()
        self._counted: set[str] = set()
        self.captures: list[Capture] = []

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
        return Topology(self.name, tuple(self._nodes), captures=tuple(self.captures))


calling_location = Location.of_caller

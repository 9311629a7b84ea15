"""What every handle of the DSL shares: the graph it adds to, and the node it stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from potok.dsl.camel_case import Spelling
from potok.dsl.graph_builder import GraphBuilder, calling_location
from potok.dsl.serdes import field_function
from potok.errors import Location, TopologyError
from potok.expressions.function import Function
from potok.topology.nodes import Node

Selector = str | Callable[..., Any]
"""A field of the value by name, or a function of the value, or of key and value."""


class UnnamedState(TopologyError):
    """A table without a name after steps that are told apart by their order in the program alone."""

    def __init__(self, derived: str, at: Location | None) -> None:
        super().__init__(
            f'a table needs a name here: "{derived}" would depend on the order of the lines',
            hint='state is found by the name of its step: pass one, for example name="order_counts"',
            at=at,
        )


class Handle(Spelling):
    """A node of the growing topology, with the verbs that may follow it."""

    def __init__(self, graph: GraphBuilder, node: Node) -> None:
        self._graph = graph
        self._node = node

    @property
    def node(self) -> Node:
        return self._node

    def __repr__(self) -> str:
        return f'<{type(self).__name__} "{self._node.name}">'

    def _name(self, given: str, verb: str) -> str:
        return self._graph.step_name(given, f"{self._node.name}.{verb}")

    def _state_name(self, given: str, verb: str) -> str:
        """State is found by name after a restart, so a derived name never depends on a count."""
        if not given and self._graph.is_counted(self._node.name):
            raise UnnamedState(f"{self._node.name}.{verb}", calling_location())
        return given or f"{self._node.name}.{verb}"


def selector(chosen: Selector) -> Function:
    return field_function(chosen, calling_location()) if isinstance(chosen, str) else Function.of(chosen, (1, 2))

"""What every handle of the DSL shares: the graph it adds to, and the node it stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from potok.dsl.graph_builder import GraphBuilder
from potok.dsl.serdes import field_function
from potok.dsl.spelling import Spelling
from potok.expressions.function import Function
from potok.topology.nodes import Node

Selector = str | Callable[..., Any]
"""A field of the value by name, or a function of the value, or of key and value."""


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
        return given or f"{self._node.name}.{verb}"


def selector(chosen: Selector) -> Function:
    return field_function(chosen) if isinstance(chosen, str) else Function.of(chosen, (1, 2))

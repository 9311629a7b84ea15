"""The base of the handles of the DSL: the graph that they extend, their node, and their type variables."""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import Any, Literal, TypeVar

from potok.dsl.camel_case import Spelling
from potok.dsl.graph_builder import GraphBuilder, calling_location
from potok.dsl.inputs.serdes import field_function
from potok.errors import Location, TopologyError
from potok.expressions.function import Function
from potok.records.formats.registered.declare import RegisteredType
from potok.records.schemas.schema import Schema
from potok.topology.nodes import Node

K = TypeVar("K")
"""The key of a record."""
V = TypeVar("V")
"""The value of a record."""
W = TypeVar("W")
"""The value on the right side of a join."""
R = TypeVar("R")
"""The result of a function."""
A = TypeVar("A")
"""An aggregate."""
K2 = TypeVar("K2")
V2 = TypeVar("V2")

Declared = str | Schema | UnionType | RegisteredType
"""A declared type that a type checker cannot follow: DDL text, a `Schema`, or a union such as `int | None`."""

Selector = str | Callable[..., Any]
"""A field of the value by name, or a function of the value, or of key and value."""

Emit = Literal["changes", "each_record"]
"""One change per row and batch, or one per record."""


class UnnamedState(TopologyError):
    """A table without a name after steps whose derived names depend on their order in the program."""

    def __init__(self, derived: str, at: Location | None) -> None:
        super().__init__(
            f'a table needs a name here: "{derived}" would depend on the order of the lines',
            hint='state is found by the name of its step: pass one, for example name="order_counts"',
            at=at,
        )


class Handle(Spelling):
    """A node of the growing topology, with the methods that may follow it."""

    def __init__(self, graph: GraphBuilder, node: Node) -> None:
        self._graph = graph
        self._node = node

    @property
    def node(self) -> Node:
        return self._node

    def __repr__(self) -> str:
        return f'<{type(self).__name__} "{self._node.name}">'

    def _name(self, given: str | None, verb: str) -> str:
        return self._graph.step_name(given, f"{self._node.name}.{verb}")

    def _state_name(self, given: str | None, verb: str) -> str:
        """Return the name of a step with state. State is found by name after a restart, so a derived name never
        depends on a count."""
        if not given and self._graph.is_counted(self._node.name):
            raise UnnamedState(f"{self._node.name}.{verb}", calling_location())
        return given or f"{self._node.name}.{verb}"


def selector(chosen: Selector) -> Function:
    return field_function(chosen, calling_location()) if isinstance(chosen, str) else Function.of(chosen, (1, 2))

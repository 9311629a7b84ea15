"""Connect the operators of one stage: each node is wired as its family declares, most of them as a plain step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from potok.operators.core.operator import Operator, Receiver
from potok.operators.core.operator_factory import OperatorFactory, has_pre_shuffle
from potok.operators.core.read_topic import SourceReader
from potok.operators.tables.tables import Keep, Receive
from potok.topology.nodes import Node

Wire = Callable[[Any, "Wiring"], None]
W = TypeVar("W", bound=Wire)

_WIRES: dict[type[Node], Wire] = {}


def wiring_of(*kinds: type[Node]) -> Callable[[W], W]:
    """Register the function that wires nodes of these classes in place of `Wiring.step`."""

    def register(wire: W) -> W:
        _WIRES.update(dict.fromkeys(kinds, wire))
        return wire

    return register


class Wiring:
    """The operators of one level: `order` is the order in which they finish."""

    def __init__(self, operator_factory: OperatorFactory, level: int) -> None:
        self.operator_factory, self._level = operator_factory, level
        self.readers: dict[str, SourceReader] = {}
        self.receivers: dict[str, Any] = {}
        self.order: list[Operator] = []
        self._tails: dict[Node, Operator] = {}
        for node in operator_factory.plan.topology:
            wire = _WIRES.get(type(node))
            if wire is None:
                self.step(node)
            else:
                wire(node, self)

    def is_first(self) -> bool:
        """Whether this level reads the sources."""
        return self._level == 0

    def is_here(self, node: Node) -> bool:
        return self.operator_factory.level(node) == self._level

    def step(self, node: Node, *, materialised: bool = True) -> Operator | None:
        """Place the parts of a node that run on this level; return the operator of the node itself, if it is one of
        them.

        Args:
            materialised: Keep the rows of a table after its operator; False if the upstream has written them.
        """
        operator_factory = self.operator_factory
        here = [(index, upstream) for index, upstream in enumerate(node.upstreams) if self.is_here(upstream)]
        if has_pre_shuffle(node):
            for _, upstream in here:
                self._connect(upstream, self.add(operator_factory.pre_shuffle(node)))
            if not self.is_here(node):
                return None
            operator = self.add(operator_factory.post_shuffle(node))
            self.receivers[node.name] = self._tails[node] = operator
            return operator
        if self.is_here(node):
            return self._post_shuffle(node, materialised=materialised and node.stateful)
        for index, upstream in here:
            self._connect(upstream, self.add(operator_factory.sender(node, index, _edge(index, upstream, node))))
        return None

    def add(self, operator: Operator, after: Operator | None = None) -> Operator:
        """Run an operator on this level; with `after`, as an uncounted part of that one's step."""
        self.order.append(operator)
        if after is not None:
            operator.counted = False
            after.downstream.append(operator)
        return operator

    def end_with(self, node: Node, operator: Operator) -> None:
        """Connect the downstream of a node to `operator`."""
        self._tails[node] = operator

    def _post_shuffle(self, node: Node, *, materialised: bool) -> Operator:
        operator_factory = self.operator_factory
        operator = self.add(operator_factory.post_shuffle(node))
        self._tails[node] = operator
        for index, upstream in enumerate(node.upstreams):
            if self.is_here(upstream):
                self._connect(upstream, operator.port(index), node.upstream_output)
            else:
                receiver = Receive(_edge(index, upstream, node), operator_factory.task)
                self.receivers[receiver.name] = receiver
                self.order.insert(self.order.index(operator), receiver)
                receiver.downstream.append(operator.port(index))
        if materialised:
            keep = Keep(node.name, operator_factory.task, operator_factory.state, operator_factory.step(node).window)
            operator.downstream.append(self.add(keep))
            self._tails[node] = keep
        return operator

    def _connect(self, upstream: Node, receiver: Receiver, output: int | None = None) -> None:
        self._tails[upstream].connect(receiver, output)


def _edge(index: int, upstream: Node, node: Node) -> str:
    """Return the name of the edge from a step to another on a higher level; a step may be upstream twice."""
    return f"{upstream.name}>{node.name}#{index}"

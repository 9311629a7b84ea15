"""From the nodes of a topology to operators at work: each family of steps says how its operators are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from potok.engine.batch_spec import BatchSpec
from potok.engine.plan import Plan
from potok.engine.report import Report
from potok.kernels.expiry import NEVER
from potok.kernels.operator import Operator, Task
from potok.kernels.outbox import Outbox
from potok.log.broker import Broker
from potok.state.session import StateSession
from potok.topology.infer import Step
from potok.topology.nodes import Node

Maker = Callable[[Any, "Workshop"], Operator]
M = TypeVar("M", bound=Maker)

_BODIES: dict[type[Node], Maker] = {}
_HEADS: dict[type[Node], Maker] = {}


def body_of(*kinds: type[Node]) -> Callable[[M], M]:
    """Marks the function that makes the operator of a step itself."""

    def register(maker: M) -> M:
        _BODIES.update(dict.fromkeys(kinds, maker))
        return maker

    return register


def head_of(*kinds: type[Node]) -> Callable[[M], M]:
    """Marks the function that makes what a step does with records before they move to their shard."""

    def register(maker: M) -> M:
        _HEADS.update(dict.fromkeys(kinds, maker))
        return maker

    return register


def has_head(node: Node) -> bool:
    """Whether a step begins with a part that runs before its records move."""
    return type(node) in _HEADS


@dataclass(slots=True)
class Workshop:
    """Makes the operators of one stage in one task, on one shard."""

    plan: Plan
    spec: BatchSpec
    task: Task
    broker: Broker
    outbox: Outbox
    report: Report
    session: StateSession | None

    def head(self, node: Node) -> Operator:
        return _HEADS[type(node)](node, self)

    def body(self, node: Node) -> Operator:
        return _BODIES[type(node)](node, self)

    def step(self, node: Node) -> Step:
        """What is known of a step: its types and its traced functions."""
        return self.plan.inferred[node]

    def level(self, node: Node) -> int:
        return self.plan.levels[node]

    def clock(self, node: Node) -> int:
        """The closing clock of a step, as of the start of the batch."""
        return self.spec.clocks.get(node.name, NEVER)

    @property
    def shards(self) -> int:
        return self.plan.shards

    @property
    def state(self) -> StateSession:
        assert self.session is not None
        return self.session

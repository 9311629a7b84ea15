"""From the nodes of a topology to operators at work: each family of steps says how its operators are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from potok.log.broker import Broker
from potok.operators.core.batch_spec import BatchSpec
from potok.operators.core.operator import Operator, Task
from potok.operators.core.read_topic import SourceReader
from potok.operators.core.task_report import Report
from potok.operators.exchange.repartition import Exchange
from potok.operators.exchange.shuffle_writer import ShuffleWriter
from potok.operators.windows.expiry import NEVER
from potok.state.session import StateSession
from potok.topology.execution_plan import Plan
from potok.topology.inference.infer import Step
from potok.topology.nodes import Node, StreamSource, TableSource

Maker = Callable[[Any, "OperatorFactory"], Operator]
M = TypeVar("M", bound=Maker)

Sender = Callable[[Any, "OperatorFactory", int, str], Operator]
S = TypeVar("S", bound=Sender)

_BODIES: dict[type[Node], Maker] = {}
_HEADS: dict[type[Node], Maker] = {}
_SENDERS: dict[type[Node], Sender] = {}


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


def sender_of(*kinds: type[Node]) -> Callable[[S], S]:
    """Marks the function that makes what brings the records of an upstream, by its number and under a name, to the
    shards of a step that gathers; others are moved as they are."""

    def register(maker: S) -> S:
        _SENDERS.update(dict.fromkeys(kinds, maker))
        return maker

    return register


def has_head(node: Node) -> bool:
    """Whether a step begins with a part that runs before its records move."""
    return type(node) in _HEADS


@dataclass(slots=True)
class OperatorFactory:
    """Makes the operators of one stage in one task, on one shard."""

    plan: Plan
    spec: BatchSpec
    task: Task
    broker: Broker
    shuffle_writer: ShuffleWriter
    report: Report
    session: StateSession | None

    def head(self, node: Node) -> Operator:
        return _HEADS[type(node)](node, self)

    def body(self, node: Node) -> Operator:
        return _BODIES[type(node)](node, self)

    def sender(self, node: Node, index: int, name: str) -> Operator:
        """What brings the records of one upstream to the shards of a step."""
        if type(node) in _SENDERS:
            return _SENDERS[type(node)](node, self, index, name)
        windowed = self.step(node).window is not None
        return Exchange(name, self.task, self.shuffle_writer, self.level(node), self.shards, windowed, node.step)

    def reader(self, node: StreamSource | TableSource) -> SourceReader:
        aligned = any(node.topic in group.topics for group in self.plan.aligned)
        columns = self.plan.columns[node.topic]
        return SourceReader(node, self.task, self.step(node), columns, self.broker, aligned=aligned)

    def step(self, node: Node) -> Step:
        """What is known of a step: its types and its traced functions."""
        return self.plan.inferred[node]

    def level(self, node: Node) -> int:
        return self.plan.levels[node]

    def clock(self, node: Node) -> int:
        """The closing clock of a step, as of the start of the batch; steps before it may hold it back."""
        clock_ms = self.spec.clocks.get(node.name, NEVER)
        return clock_ms if clock_ms <= NEVER else clock_ms - self.plan.topology.held_back_ms(node)

    @property
    def shards(self) -> int:
        return self.plan.shards

    @property
    def state(self) -> StateSession:
        assert self.session is not None
        return self.session

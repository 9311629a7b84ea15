"""Create operators for the nodes of a topology: each family of steps registers how its operators are created."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from potok.events.personal.key_store import known_key_store
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

_POST_SHUFFLE: dict[type[Node], Maker] = {}
_PRE_SHUFFLE: dict[type[Node], Maker] = {}
_SENDERS: dict[type[Node], Sender] = {}


def post_shuffle_of(*kinds: type[Node]) -> Callable[[M], M]:
    """Register the function that creates the operator of a step after the shuffle."""

    def register(maker: M) -> M:
        _POST_SHUFFLE.update(dict.fromkeys(kinds, maker))
        return maker

    return register


def pre_shuffle_of(*kinds: type[Node]) -> Callable[[M], M]:
    """Register the function that creates what a step does with records before they move to their shard."""

    def register(maker: M) -> M:
        _PRE_SHUFFLE.update(dict.fromkeys(kinds, maker))
        return maker

    return register


def sender_of(*kinds: type[Node]) -> Callable[[S], S]:
    """Register the function that creates the exchange from an upstream, by its number and under a name, to the shards
    of a step that gathers; other records are moved as they are.
    """

    def register(maker: S) -> S:
        _SENDERS.update(dict.fromkeys(kinds, maker))
        return maker

    return register


def has_pre_shuffle(node: Node) -> bool:
    """Whether a step has a part that runs before its records move."""
    return type(node) in _PRE_SHUFFLE


@dataclass(slots=True)
class OperatorFactory:
    """Create the operators of one stage in one task, on one shard."""

    plan: Plan
    spec: BatchSpec
    task: Task
    broker: Broker
    shuffle_writer: ShuffleWriter
    report: Report
    session: StateSession | None

    def pre_shuffle(self, node: Node) -> Operator:
        return _PRE_SHUFFLE[type(node)](node, self)

    def post_shuffle(self, node: Node) -> Operator:
        return _POST_SHUFFLE[type(node)](node, self)

    def sender(self, node: Node, index: int, name: str) -> Operator:
        """Return the exchange from one upstream to the shards of a step."""
        if type(node) in _SENDERS:
            return _SENDERS[type(node)](node, self, index, name)
        windowed = self.step(node).window is not None
        return Exchange(name, self.task, self.shuffle_writer, self.level(node), self.shards, windowed, node.step)

    def reader(self, node: StreamSource | TableSource) -> SourceReader:
        aligned = any(node.topic in group.topics for group in self.plan.aligned)
        columns = self.plan.columns[node.topic]
        # A replay or a shadow, which runs under another name, reads what the query has written.
        skips = node.own if isinstance(node, StreamSource) and node.own and node.own.query == self.spec.query else None
        keys = known_key_store(self.plan.personal_keys)
        return SourceReader(
            node, self.task, self.step(node), columns, self.broker, aligned=aligned, skips=skips, keys=keys
        )

    def step(self, node: Node) -> Step:
        """Return the types and traced functions of a step."""
        return self.plan.inferred[node]

    def level(self, node: Node) -> int:
        return self.plan.levels[node]

    def watermark(self, node: Node) -> int:
        """Return the watermark of a step at the start of the batch, which preceding steps may hold back."""
        watermark_ms = self.spec.watermarks.get(node.name, NEVER)
        return watermark_ms if watermark_ms <= NEVER else watermark_ms - self.plan.topology.held_back_ms(node)

    @property
    def shards(self) -> int:
        return self.plan.shards

    @property
    def state(self) -> StateSession:
        assert self.session is not None
        return self.session

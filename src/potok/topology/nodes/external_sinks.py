"""Sinks outside the log."""

from __future__ import annotations

from dataclasses import dataclass

from potok.sinks.guarantee import Guarantee
from potok.sinks.sink_spec import SinkSpec
from potok.topology.nodes.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Deliver(Node):
    """Deliver to a sink outside the log."""

    upstream: Node
    target: SinkSpec
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE

    @property
    def kind(self) -> str:
        return self.target.verb

    @property
    def leaves_the_log(self) -> bool:
        return True

"""Where records go outside the log."""

from __future__ import annotations

from potok.engine.outlet import OutletWriter
from potok.engine.workshop import Workshop, body_of
from potok.kernels.operator import Operator
from potok.sinks.target import Types
from potok.topology.nodes import Deliver


@body_of(Deliver)
def deliver(node: Deliver, shop: Workshop) -> Operator:
    step = shop.step(node)
    return OutletWriter(node, shop.task, Types(step.key, step.value), shop.outbox.task, shop.spec, shop.report)

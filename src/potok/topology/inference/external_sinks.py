"""Inference for sinks outside the log."""

from __future__ import annotations

from dataclasses import replace

from potok.errors import TopologyError
from potok.sinks.sink_spec import Types
from potok.topology.inference.step import Step, infer_step
from potok.topology.nodes import Deliver


@infer_step.register
def _deliver(node: Deliver, ups: list[Step]) -> Step:
    try:
        node.target.check(Types(ups[0].key, ups[0].value), node.guarantee)
    except TopologyError as error:
        error.at = error.at or node.at
        raise
    return replace(ups[0], exprs=(), reason="", plan=None, order_dependent=False)

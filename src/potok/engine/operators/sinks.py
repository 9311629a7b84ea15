"""Where records go: topics, and systems outside the log."""

from __future__ import annotations

from potok.engine.operators.stateless import traced
from potok.engine.outlet import OutletWriter
from potok.engine.sink import SinkWriter
from potok.engine.workshop import Workshop, body_of
from potok.kernels.operator import Operator
from potok.sinks.target import Types
from potok.topology.nodes import Deliver, Sink


@body_of(Sink)
def sink(node: Sink, shop: Workshop) -> Operator:
    topology = shop.plan.topology
    sources = [source for source in topology.sources if source.topic in topology.upstream_topics(node)]
    formats = {source.value.format for source in sources}
    return SinkWriter(
        node.name,
        shop.task,
        node.topic,
        shop.spec.partitions[node.topic],
        (node.key_format, node.value_format),
        formats.pop() if len(formats) == 1 else "",
        shop.broker,
        shop.spec.staging,
        shop.report,
        node.guarantee,
        stamp=None if node.stamp is None else (node.stamp, traced(node, shop)),
    )


@body_of(Deliver)
def deliver(node: Deliver, shop: Workshop) -> Operator:
    step = shop.step(node)
    return OutletWriter(node, shop.task, Types(step.key, step.value), shop.outbox.task, shop.spec, shop.report)

"""Where records go: topics, and systems outside the log."""

from __future__ import annotations

from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import Workshop, body_of
from potok.operators.sinks.external_sink import OutletWriter
from potok.operators.sinks.topic_sink import SinkWriter
from potok.operators.stateless.factory import traced
from potok.sinks.sink_spec import Types
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

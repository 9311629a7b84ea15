"""Operators that write to topics and to external systems."""

from __future__ import annotations

from potok.events.personal.key_store import known_key_store, open_key_store
from potok.events.rows import FORMAT
from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of
from potok.operators.sinks.event_encoder import Encoder, EventEncoder, EventRowEncoder, SealingEncoder
from potok.operators.sinks.external_sink import ExternalSinkOperator
from potok.operators.sinks.topic_sink import SinkWriter
from potok.operators.stateless.factory import traced
from potok.sinks.sink_spec import Types
from potok.topology.nodes import Deliver, Sink


@post_shuffle_of(Sink)
def sink(node: Sink, factory: OperatorFactory) -> Operator:
    topology = factory.plan.topology
    sources = [source for source in topology.sources if source.topic in topology.upstream_topics(node)]
    formats = {source.value.format for source in sources}
    return SinkWriter(
        node.name,
        factory.task,
        node.topic,
        factory.spec.partitions[node.topic],
        (node.key_format, node.value_format),
        formats.pop() if len(formats) == 1 else "",
        factory.broker,
        factory.spec.staging,
        factory.report,
        node.guarantee,
        stamp=None if node.stamp is None else (node.stamp, traced(node, factory)),
        events=_event_encoder(node, factory),
        by_task=node.by_task,
    )


def _event_encoder(node: Sink, factory: OperatorFactory) -> Encoder | None:
    """Return what encodes the values of a sink as events, if it writes events."""
    if node.events is not None:
        keys = known_key_store(factory.plan.personal_keys)
        return EventEncoder(node.events, factory.spec.query, factory.spec.input_partitions, keys)
    if node.seals:
        return SealingEncoder(node.seals, node.topic, open_key_store(factory.plan.personal_keys))
    if node.value_format == FORMAT:
        return EventRowEncoder(factory.spec.query, node.topic, factory.spec.input_partitions)
    return None


@post_shuffle_of(Deliver)
def deliver(node: Deliver, factory: OperatorFactory) -> Operator:
    step = factory.step(node)
    return ExternalSinkOperator(
        node, factory.task, Types(step.key, step.value), factory.shuffle_writer.task, factory.spec, factory.report
    )

"""Processors, their outputs, and ordering by event time."""

from __future__ import annotations

import copy
from dataclasses import replace

from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of
from potok.operators.core.wiring import Wiring, wiring_of
from potok.operators.processors.process import ProcessRecords
from potok.operators.processors.time_ordered import OrderRecords
from potok.patterns.aggregates.processor import AggregateProcessor
from potok.topology.nodes import AggregateRoot, Channel, Fold, Ordered, Process, Saga, StoreTable


@post_shuffle_of(Process, Saga)
def process(node: Process, factory: OperatorFactory) -> Operator:
    up = factory.step(node.upstream)
    watermark_ms = factory.watermark(node)
    return ProcessRecords(
        node,
        factory.task,
        up.key,
        factory.state,
        watermark_ms,
        factory.spec.input_partitions,
        by_stream_time=not up.rekeyed,
    )


@post_shuffle_of(AggregateRoot, Fold)
def aggregate_root(node: AggregateRoot, factory: OperatorFactory) -> Operator:
    # In a replay or a shadow, which run under another name, commands were decided before.
    deciding = copy.copy(node.processor)
    if isinstance(deciding, AggregateProcessor):
        deciding.decides = factory.spec.query == deciding.query
    return process(replace(node, processor=deciding), factory)


@wiring_of(AggregateRoot, Fold)
def wire_aggregate_root(node: AggregateRoot, wiring: Wiring) -> None:
    """Place no second copy of the rows: the processor writes them."""
    wiring.step(node, materialised=False)


@post_shuffle_of(Ordered)
def ordered(node: Ordered, factory: OperatorFactory) -> Operator:
    input_partitions, batch = factory.spec.input_partitions, factory.spec.fence.attempt.batch
    return OrderRecords(
        node.name, factory.task, node.grace_ms, factory.state, factory.watermark(node), input_partitions, batch
    )


@post_shuffle_of(Channel, StoreTable)
def output(node: Channel | StoreTable, factory: OperatorFactory) -> Operator:
    return Operator(node.name, factory.task)

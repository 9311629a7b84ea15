"""Processors, their outputs, and ordering by event time."""

from __future__ import annotations

from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of
from potok.operators.processors.process import ProcessRecords
from potok.operators.processors.time_ordered import OrderRecords
from potok.topology.nodes import Channel, Ordered, Process, Saga, StoreTable


@post_shuffle_of(Process, Saga)
def process(node: Process, factory: OperatorFactory) -> Operator:
    up = factory.step(node.upstream)
    clock_ms = factory.clock(node)
    return ProcessRecords(
        node,
        factory.task,
        up.key,
        factory.state,
        clock_ms,
        factory.spec.input_partitions,
        by_stream_time=not up.rekeyed,
    )


@post_shuffle_of(Ordered)
def ordered(node: Ordered, factory: OperatorFactory) -> Operator:
    input_partitions, batch = factory.spec.input_partitions, factory.spec.fence.attempt.batch
    return OrderRecords(
        node.name, factory.task, node.grace_ms, factory.state, factory.clock(node), input_partitions, batch
    )


@post_shuffle_of(Channel, StoreTable)
def output(node: Channel | StoreTable, factory: OperatorFactory) -> Operator:
    return Operator(node.name, factory.task)

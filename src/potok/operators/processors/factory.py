"""Processors, their outputs, and ordering by event time."""

from __future__ import annotations

from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of
from potok.operators.processors.process import ProcessRecords
from potok.operators.processors.time_ordered import OrderRecords
from potok.topology.nodes import Channel, Ordered, Process, Saga, StoreTable


@post_shuffle_of(Process, Saga)
def process(node: Process, shop: OperatorFactory) -> Operator:
    up = shop.step(node.upstream)
    clock_ms = shop.clock(node)
    return ProcessRecords(
        node, shop.task, up.key, shop.state, clock_ms, shop.spec.input_partitions, by_stream_time=not up.rekeyed
    )


@post_shuffle_of(Ordered)
def ordered(node: Ordered, shop: OperatorFactory) -> Operator:
    input_partitions, batch = shop.spec.input_partitions, shop.spec.fence.attempt.batch
    return OrderRecords(node.name, shop.task, node.grace_ms, shop.state, shop.clock(node), input_partitions, batch)


@post_shuffle_of(Channel, StoreTable)
def output(node: Channel | StoreTable, shop: OperatorFactory) -> Operator:
    return Operator(node.name, shop.task)

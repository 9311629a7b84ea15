"""Processors, their outputs, and what puts records in order."""

from __future__ import annotations

from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import Workshop, body_of
from potok.operators.processors.process import ProcessRecords
from potok.operators.processors.time_ordered import OrderRecords
from potok.topology.nodes import Channel, Ordered, Process, StoreTable


@body_of(Process)
def process(node: Process, shop: Workshop) -> Operator:
    up = shop.step(node.upstream)
    clock_ms = shop.clock(node)
    return ProcessRecords(node, shop.task, up.key, shop.state, clock_ms, shop.spec.lanes, by_stream_time=not up.rekeyed)


@body_of(Ordered)
def ordered(node: Ordered, shop: Workshop) -> Operator:
    lanes, batch = shop.spec.lanes, shop.spec.fence.attempt.batch
    return OrderRecords(node.name, shop.task, node.grace_ms, shop.state, shop.clock(node), lanes, batch)


@body_of(Channel, StoreTable)
def output(node: Channel | StoreTable, shop: Workshop) -> Operator:
    return Operator(node.name, shop.task)

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
def process(node: Process, shop: OperatorFactory) -> Operator:
    up = shop.step(node.upstream)
    clock_ms = shop.clock(node)
    return ProcessRecords(
        node, shop.task, up.key, shop.state, clock_ms, shop.spec.input_partitions, by_stream_time=not up.rekeyed
    )


@post_shuffle_of(AggregateRoot, Fold)
def aggregate_root(node: AggregateRoot, shop: OperatorFactory) -> Operator:
    # In a replay or a shadow, which run under another name, commands were decided before.
    deciding = copy.copy(node.processor)
    if isinstance(deciding, AggregateProcessor):
        deciding.decides = shop.spec.query == deciding.query
    return process(replace(node, processor=deciding), shop)


@wiring_of(AggregateRoot, Fold)
def wire_aggregate_root(node: AggregateRoot, wiring: Wiring) -> None:
    """Place no second copy of the rows: the processor writes them."""
    wiring.step(node, materialised=False)


@post_shuffle_of(Ordered)
def ordered(node: Ordered, shop: OperatorFactory) -> Operator:
    input_partitions, batch = shop.spec.input_partitions, shop.spec.fence.attempt.batch
    return OrderRecords(node.name, shop.task, node.grace_ms, shop.state, shop.clock(node), input_partitions, batch)


@post_shuffle_of(Channel, StoreTable)
def output(node: Channel | StoreTable, shop: OperatorFactory) -> Operator:
    return Operator(node.name, shop.task)

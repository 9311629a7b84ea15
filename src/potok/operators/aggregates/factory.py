"""Aggregates: the pre-shuffle operator, which runs where records are read, and the post-shuffle operator on the
shard."""

from __future__ import annotations

from potok.operators.aggregates import aggregates
from potok.operators.aggregates.accumulators import accumulator_of
from potok.operators.aggregates.overflow_sums import AggregateOneByOne, SendOneByOne
from potok.operators.aggregates.pre_aggregate import PreAggregate
from potok.operators.aggregates.row_aggregates import AccumulateRecords
from potok.operators.core.function_usage import fields_read
from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of, pre_shuffle_of
from potok.operators.exchange.repartition import RepartitionRecords
from potok.operators.windows.factory import CHECKED, aggregate_windows, repartition_to_windows
from potok.topology.nodes import Aggregate, Hopping, Session, Sliding, Tumbling


@pre_shuffle_of(Aggregate)
def ship(node: Aggregate, shop: OperatorFactory) -> Operator:
    plan = shop.step(node).plan
    assert plan is not None
    if isinstance(node.window, Session | Sliding):
        return repartition_to_windows(node, node.window, shop)
    assert node.window is None or isinstance(node.window, Tumbling | Hopping)
    if plan.native:
        sends = SendOneByOne if node.name in shop.spec.careful else PreAggregate
        return sends(node.name, shop.task, plan, node.window, shop.shuffle_writer, shop.level(node), shop.shards)
    function = node.aggregation.function if node.aggregation.kind not in ("fold", "reduce") else None
    selector = (function, plan.selector) if function is not None else None
    return RepartitionRecords(
        node.name, shop.task, node.window, shop.shuffle_writer, shop.level(node), shop.shards, selector, _fields(node)
    )


def _fields(node: Aggregate) -> frozenset[str] | None:
    """Return the fields that an aggregator reads of a value, if it uses the value in no other way."""
    function = node.aggregation.function
    if node.aggregation.kind != "fold" or function is None:
        return None
    return fields_read(function.callable, function.arity - 2)


@post_shuffle_of(Aggregate)
def aggregate(node: Aggregate, shop: OperatorFactory) -> Operator:
    key_type, plan = shop.step(node.upstream).key, shop.step(node).plan
    assert plan is not None
    if isinstance(node.window, Session | Sliding):
        return aggregate_windows(node, node.window, shop)
    assert node.window is None or isinstance(node.window, Tumbling | Hopping)
    if plan.native:
        adds = AggregateOneByOne if node.name in shop.spec.careful else aggregates.Aggregate
        return adds(node.name, shop.task, plan, node.window, key_type, shop.state, shop.clock(node))
    return AccumulateRecords(
        node.name,
        shop.task,
        accumulator_of(node.aggregation, shop.step(node.upstream).value),
        node.window,
        key_type,
        plan.result,
        shop.state,
        shop.clock(node),
        shop.spec.input_partitions,
        declared=node.aggregation.schema is not None or (plan.result is not None and node.aggregation.kind in CHECKED),
        each_record=plan.each_record,
    )

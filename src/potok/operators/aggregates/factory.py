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
def repartition(node: Aggregate, factory: OperatorFactory) -> Operator:
    plan = factory.step(node).plan
    assert plan is not None
    if isinstance(node.window, Session | Sliding):
        return repartition_to_windows(node, node.window, factory)
    assert node.window is None or isinstance(node.window, Tumbling | Hopping)
    if plan.native:
        sends = SendOneByOne if node.name in factory.spec.careful else PreAggregate
        return sends(
            node.name, factory.task, plan, node.window, factory.shuffle_writer, factory.level(node), factory.shards
        )
    function = node.aggregation.function if node.aggregation.kind not in ("fold", "reduce") else None
    selector = (function, plan.selector) if function is not None else None
    return RepartitionRecords(
        node.name,
        factory.task,
        node.window,
        factory.shuffle_writer,
        factory.level(node),
        factory.shards,
        selector,
        _fields(node),
    )


def _fields(node: Aggregate) -> frozenset[str] | None:
    """Return the fields that an aggregator reads of a value, if it uses the value in no other way."""
    function = node.aggregation.function
    if node.aggregation.kind != "fold" or function is None:
        return None
    return fields_read(function.callable, function.arity - 2)


@post_shuffle_of(Aggregate)
def aggregate(node: Aggregate, factory: OperatorFactory) -> Operator:
    key_type, plan = factory.step(node.upstream).key, factory.step(node).plan
    assert plan is not None
    if isinstance(node.window, Session | Sliding):
        return aggregate_windows(node, node.window, factory)
    assert node.window is None or isinstance(node.window, Tumbling | Hopping)
    if plan.native:
        adds = AggregateOneByOne if node.name in factory.spec.careful else aggregates.Aggregate
        return adds(node.name, factory.task, plan, node.window, key_type, factory.state, factory.watermark(node))
    return AccumulateRecords(
        node.name,
        factory.task,
        accumulator_of(node.aggregation, factory.step(node.upstream).value),
        node.window,
        key_type,
        plan.result,
        factory.state,
        factory.watermark(node),
        factory.spec.input_partitions,
        declared=node.aggregation.schema is not None or (plan.result is not None and node.aggregation.kind in CHECKED),
        each_record=plan.each_record,
    )

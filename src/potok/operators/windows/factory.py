"""Aggregates in windows that follow the records of a key: the pre-shuffle and the post-shuffle operators."""

from __future__ import annotations

from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.operators.core.function_usage import fields_read
from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory
from potok.operators.exchange.repartition import RepartitionFlagged
from potok.operators.windows.event_windows import AccumulateWindows
from potok.operators.windows.lateness import EventWindow
from potok.operators.windows.pre_aggregate_sessions import PreAggregateSessions
from potok.operators.windows.sessions import MergeSessions
from potok.operators.windows.window_fold import FrameFold
from potok.topology.nodes import Aggregate, Session

CHECKED = ("sum", "fold", "reduce")
"""Kinds whose result may not fit the declared or traced type: a sum of 64 bits may overflow."""


def repartition_to_windows(node: Aggregate, window: EventWindow, factory: OperatorFactory) -> Operator:
    plan = factory.step(node).plan
    assert plan is not None
    exchange = factory.shuffle_writer, factory.level(node), factory.shards
    if plan.native and isinstance(window, Session):
        return PreAggregateSessions(node.name, factory.task, plan, window, *exchange)
    kind, function = node.aggregation.kind, node.aggregation.function
    fields = fields_read(function.callable, function.arity - 2) if kind == "fold" and function is not None else None
    selector = (function, plan.selector) if function is not None and kind not in ("fold", "reduce") else None
    return RepartitionFlagged(
        node.name,
        factory.task,
        window,
        *exchange,
        selector,
        fields,
        _marks(node, window, factory),
        valueless=kind == "count",
    )


def _marks(
    node: Aggregate, window: EventWindow, factory: OperatorFactory
) -> tuple[tuple[Function, Expr | None] | None, tuple[Function, Expr | None] | None]:
    if not isinstance(window, Session):
        return None, None
    exprs = iter(factory.step(node).exprs)
    opens = None if window.opens is None else (window.opens, next(exprs))
    closes = None if window.closes is None else (window.closes, next(exprs))
    return opens, closes


def aggregate_windows(node: Aggregate, window: EventWindow, factory: OperatorFactory) -> Operator:
    key_type, plan = factory.step(node.upstream).key, factory.step(node).plan
    assert plan is not None
    if plan.native and isinstance(window, Session):
        return MergeSessions(node.name, factory.task, plan, window, key_type, factory.state, factory.watermark(node))
    checked = node.aggregation.schema is not None or node.aggregation.kind in CHECKED
    return AccumulateWindows(
        node.name,
        factory.task,
        FrameFold(node.aggregation, plan.result if checked else None, factory.step(node.upstream).value),
        window,
        key_type,
        plan.result,
        factory.state,
        factory.watermark(node),
        factory.spec.input_partitions,
        each_record=plan.each_record,
    )

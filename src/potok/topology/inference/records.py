"""Inference for sources, steps on records, aggregates and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from potok.errors import TopologyError
from potok.expressions.expr import Expr, TupleExpr
from potok.extras import need_extra
from potok.records.declared_class import same_type
from potok.records.schemas.schema import Schema
from potok.sinks.sink_spec import Types
from potok.topology.aggregations import AggregatePlan, check_numbers, plan_aggregation, row_by_row
from potok.topology.inference.step import Step, arrow_of, infer_step, trace_in, windowed_key
from potok.topology.nodes import (
    About,
    Aggregate,
    Annotate,
    Arm,
    Branch,
    Deliver,
    Filter,
    FlatMap,
    FlatMapValues,
    Foreach,
    Map,
    MapBatches,
    MapValues,
    Merge,
    Node,
    Ordered,
    Peek,
    Repartition,
    SelectKey,
    Session,
    Sink,
    Sliding,
    StreamSource,
    Suppress,
    TableFilter,
    TableMapValues,
    TableSource,
    ToStream,
    ToTable,
    Window,
)


@infer_step.register
def _source(node: StreamSource, ups: list[Step]) -> Step:  # noqa: ARG001
    key, value = arrow_of(node.key.schema), arrow_of(node.value.schema)
    exprs, reason = _timestamp(node, key, value)
    return Step(key, value, exprs, reason, intact=node.events is None, topics=frozenset((node.topic,)))


@infer_step.register
def _table_source(node: TableSource, ups: list[Step]) -> Step:  # noqa: ARG001
    key, value = arrow_of(node.key.schema), arrow_of(node.value.schema)
    exprs, reason = _timestamp(node, key, value)
    if node.about:
        value = _annotated(value, node.about, node)
    return Step(key, value, exprs, reason, sharded=True, topics=frozenset((node.topic,)))


def _timestamp(
    node: StreamSource | TableSource, key: pa.DataType | None, value: pa.DataType | None
) -> tuple[tuple[Expr | None, ...], str]:
    if node.timestamps.function is None:
        return (), ""
    expr, reason = trace_in(node.timestamps.function, Step(key, value))
    return (expr,), reason


@infer_step.register
def _filter(node: Filter, ups: list[Step]) -> Step:
    expr, reason = trace_in(node.predicate, ups[0])
    return replace(ups[0], exprs=(expr,), reason=reason, plan=None, order_dependent=False)


ABOUT_TYPES = {
    About.TIMESTAMP: pa.int64(),
    About.PARTITION: pa.int32(),
    About.OFFSET: pa.int64(),
    About.HEADERS: pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())])),
    About.PROCESSING_TIME: pa.int64(),
}
"""Times are milliseconds since 1970."""


def _annotated(value: pa.DataType | None, fields: Sequence[tuple[str, About]], node: Node) -> pa.DataType:
    if value is None or not pa.types.is_struct(value):
        hint = 'declare the type of the value: builder.stream("orders", value="amount double")'
        raise TopologyError("only typed values with fields can be given more fields", hint=hint, at=node.at)
    return pa.struct([*value, *(pa.field(name, ABOUT_TYPES[about]) for name, about in fields)])


def _with_value(up: Step, value: pa.DataType | None) -> Step:
    """Return the step of a node that replaces values without a traced function."""
    return replace(up, value=value, exprs=(), reason="", intact=False, plan=None, order_dependent=False)


@infer_step.register
def _annotate(node: Annotate, ups: list[Step]) -> Step:
    return _with_value(ups[0], _annotated(ups[0].value, node.fields, node))


@infer_step.register
def _branch(node: Branch, ups: list[Step]) -> Step:
    found = [trace_in(predicate, ups[0]) for predicate in node.predicates]
    reason = next((reason for _, reason in found if reason), "")
    return replace(ups[0], exprs=tuple(expr for expr, _ in found), reason=reason, plan=None, order_dependent=False)


@infer_step.register(Arm)
@infer_step.register(Repartition)
def _unchanged(node: Node, ups: list[Step]) -> Step:
    moved = isinstance(node, Repartition)
    return replace(ups[0], exprs=(), reason="", plan=None, order_dependent=False, sharded=moved or ups[0].sharded)


@infer_step.register(Peek)
@infer_step.register(Foreach)
def _action(node: Peek | Foreach, ups: list[Step]) -> Step:  # noqa: ARG001
    return replace(ups[0], exprs=(None,), reason="it has an effect outside", plan=None, order_dependent=False)


@infer_step.register
def _merge(node: Merge, ups: list[Step]) -> Step:
    first = ups[0]
    waits = {_put_in_order(source) for source in node.sources}
    topics = frozenset[str]().union(*(up.topics for up in ups))
    same_key = all(same_type(up.key, first.key) for up in ups)
    same_value = all(same_type(up.value, first.value) for up in ups)
    return Step(
        first.key if same_key else None,
        first.value if same_value else None,
        intact=all(up.intact for up in ups) and same_value,
        # Delayed records follow others of their partition, so the order of positions is lost.
        rekeyed=any(up.rekeyed for up in ups) or not same_key or len(topics) > 1 or len(waits) > 1,
        topics=topics,
        sharded=all(up.sharded for up in ups) and same_key,
    )


def _put_in_order(node: Node) -> frozenset[Node]:
    """Return the upstream steps that delay records and emit them by event time."""
    seen, ahead = set[Node](), [node]
    while ahead:
        one = ahead.pop()
        if one not in seen:
            seen.add(one)
            ahead += one.upstreams
    return frozenset(one for one in seen if isinstance(one, Ordered))


@infer_step.register
def _map_values(node: MapValues, ups: list[Step]) -> Step:
    expr, reason = trace_in(node.function, ups[0])
    return _mapped(ups[0], expr, reason, node.schema)


@infer_step.register
def _table_map_values(node: TableMapValues, ups: list[Step]) -> Step:
    expr, reason = trace_in(node.function, ups[0])
    return _mapped(ups[0], expr, reason, node.schema)


def _mapped(up: Step, expr: Expr | None, reason: str, schema: Schema | None) -> Step:
    if schema is not None and expr is not None and expr.type != schema.arrow:
        expr, reason = None, f"the declared type {schema.ddl()} differs from the traced one"
    value = expr.type if expr is not None else arrow_of(schema)
    return replace(up, value=value, exprs=(expr,), reason=reason, intact=False, plan=None, order_dependent=False)


@infer_step.register
def _map_batches(node: MapBatches, ups: list[Step]) -> Step:
    if node.format != "arrow":
        need_extra(f'map_batches with format="{node.format}"', "dataframes")
    value, key = ups[0].value, ups[0].key
    if value is None or (node.with_key and key is None):
        what = "values" if value is None else "keys"
        hint = f"declare it where the {what} are made, for example {what[:-1]}=Order"
        raise TopologyError(f"a function of columns needs a type, and these {what} have none", hint=hint, at=node.at)
    columns = [*(["key"] if node.with_key else []), *([node.row_column] if node.row_column else [])]
    columns += [field.name for field in value] if pa.types.is_struct(value) else ["value"]
    repeated = next((name for name in columns if columns.count(name) > 1), None)
    if repeated is not None:
        hint = "rename the field with map_values, or choose another row_column="
        raise TopologyError(f'the function would get two columns "{repeated}"', hint=hint, at=node.at)
    return _with_value(ups[0], arrow_of(node.schema))


@infer_step.register
def _table_filter(node: TableFilter, ups: list[Step]) -> Step:
    expr, reason = trace_in(node.predicate, ups[0])
    return replace(ups[0], exprs=(expr,), reason=reason, plan=None, order_dependent=False)


@infer_step.register
def _map(node: Map, ups: list[Step]) -> Step:
    expr, reason = trace_in(node.function, ups[0], pair=True)
    pair = isinstance(expr, TupleExpr) and len(expr.items) == 2
    if expr is not None and (not pair or node.schema is not None or node.key_schema is not None):
        expr, reason = None, "it does not return a pair of expressions"
    key = expr.type.field(0).type if expr is not None else arrow_of(node.key_schema)
    value = expr.type.field(1).type if expr is not None else arrow_of(node.schema)
    return Step(key, value, (expr,), reason, rekeyed=True, topics=ups[0].topics)


@infer_step.register
def _flat_map(node: FlatMap, ups: list[Step]) -> Step:
    reason = "it returns a list of records"
    topics = ups[0].topics
    return Step(arrow_of(node.key_schema), arrow_of(node.schema), (None,), reason, rekeyed=True, topics=topics)


@infer_step.register
def _flat_map_values(node: FlatMapValues, ups: list[Step]) -> Step:
    value, expr = arrow_of(node.schema), node.function.expr
    if expr is not None:
        value = expr.type.value_type
    return replace(
        ups[0],
        value=value,
        exprs=(expr,),
        reason="it returns a list of values" if expr is None else "",
        intact=False,
        plan=None,
        order_dependent=False,
    )


@infer_step.register
def _select_key(node: SelectKey, ups: list[Step]) -> Step:
    expr, reason = trace_in(node.function, ups[0])
    if expr is not None and node.key_schema is not None and expr.type != node.key_schema.arrow:
        expr, reason = None, "the declared type of the key differs from the traced one"
    key = expr.type if expr is not None else arrow_of(node.key_schema)
    return replace(
        ups[0], key=key, exprs=(expr,), reason=reason, rekeyed=True, sharded=False, plan=None, order_dependent=False
    )


@infer_step.register
def _aggregate(node: Aggregate, ups: list[Step]) -> Step:
    plan = plan_aggregation(node.aggregation, ups[0].key, ups[0].value)
    check_numbers(node.aggregation, plan.selector, node.at)
    if node.each_record:
        plan = replace(row_by_row(plan), each_record=True)
    plan = plan_in_window(plan, node.window)
    return Step(
        windowed_key(ups[0].key, node.window),
        plan.result,
        trace_marks(node.window, ups[0]),
        reason=plan.reason,
        rekeyed=True,
        sharded=node.window is None,
        plan=plan,
        order_dependent=plan.order_dependent and ups[0].rekeyed,
        window=node.window,
        topics=ups[0].topics,
    )


@infer_step.register
def _to_table(node: ToTable, ups: list[Step]) -> Step:  # noqa: ARG001
    return Step(ups[0].key, ups[0].value, rekeyed=True, sharded=True, topics=ups[0].topics)


@infer_step.register
def _to_stream(node: ToStream, ups: list[Step]) -> Step:
    # The changes of a row arrive in order, from its shard, whatever their timestamps.
    made = replace(
        ups[0], exprs=(), reason="", plan=None, order_dependent=False, intact=False, window=None, rekeyed=False
    )
    if not node.changes or made.value is None:
        return made
    return replace(made, value=pa.struct([pa.field("before", made.value), pa.field("after", made.value)]))


@infer_step.register
def _suppress(node: Suppress, ups: list[Step]) -> Step:
    if node.every_ms is None and ups[0].window is None:
        hint = "emit_final() is for tables with windows; emit_every(...) works on any table"
        raise TopologyError("there is no window to close", hint=hint, at=node.at)
    return replace(ups[0], exprs=(), reason="", plan=None, order_dependent=False, intact=False)


@infer_step.register
def _sink(node: Sink, ups: list[Step]) -> Step:
    expr, reason = (None, "") if node.stamp is None else trace_in(node.stamp, ups[0])
    exprs = () if node.stamp is None else (expr,)
    return replace(ups[0], exprs=exprs, reason=reason, plan=None, order_dependent=False)


def plan_in_window(plan: AggregatePlan, window: Window | None) -> AggregatePlan:
    """Plan an aggregate in windows: sessions with a gap merge as columns; other windows need their records again.

    Their records are aggregated in the order of event time, so the result does not depend on the order of
    arrival.
    """
    if not isinstance(window, Session | Sliding):
        return plan
    plan = replace(plan, order_dependent=False)
    if isinstance(window, Session) and window.plain:
        return plan
    kind = "sliding windows" if isinstance(window, Sliding) else "such sessions"
    return row_by_row(plan, f"{kind} are recomputed when a record arrives")


def trace_marks(window: Window | None, up: Step) -> tuple[Expr | None, ...]:
    """Return the expressions of `opens` and `closes`, if given."""
    if not isinstance(window, Session):
        return ()
    return tuple(trace_in(test, up)[0] for test in (window.opens, window.closes) if test is not None)


@infer_step.register
def _deliver(node: Deliver, ups: list[Step]) -> Step:
    try:
        node.target.check(Types(ups[0].key, ups[0].value), node.guarantee)
    except TopologyError as error:
        error.at = error.at or node.at
        raise
    return replace(ups[0], exprs=(), reason="", plan=None, order_dependent=False)

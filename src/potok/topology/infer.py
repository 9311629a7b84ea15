"""What is known of each step before anything runs: the types of its keys and values, and which functions were
traced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

import pyarrow as pa

from potok.expressions.expr import Expr, TupleExpr
from potok.expressions.function import Function
from potok.expressions.trace import Traced, Untraceable
from potok.records.schema import Schema
from potok.topology.aggregations import AggregatePlan, plan_aggregation, trace_function
from potok.topology.graph import Topology
from potok.topology.nodes import (
    Aggregate,
    Arm,
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Foreach,
    Map,
    MapValues,
    Merge,
    Node,
    Peek,
    Repartition,
    SelectKey,
    Sink,
    StreamSource,
    TableFilter,
    TableMapValues,
    TableSource,
    ToStream,
    ToTable,
    Tumbling,
)


@dataclass(frozen=True, slots=True)
class Step:
    """What inference found out about a node.

    `key` and `value` are the types of what comes out; None is dynamic. `exprs` holds one expression for each function
    of the node, or None where that function runs as Python, and `reason` says why. `intact` says that values are
    still as
    they were read from their topic; `rekeyed` that the records of a key may come from several partitions; `sharded`
    that records are on the shard of their key. `window` is that of the table whose rows these are.
    """

    key: pa.DataType | None
    value: pa.DataType | None
    exprs: tuple[Expr | None, ...] = ()
    reason: str = ""
    intact: bool = False
    rekeyed: bool = False
    sharded: bool = False
    plan: AggregatePlan | None = None
    order_dependent: bool = False
    window: Tumbling | None = None
    topics: frozenset[str] = frozenset()

    @property
    def native(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class Inferred:
    """The steps of a topology, by node."""

    steps: dict[Node, Step]

    def __getitem__(self, node: Node) -> Step:
        return self.steps[node]


def infer(topology: Topology) -> Inferred:
    """Types and traces of all steps. A field that does not exist is found here, with the place of the lambda."""
    steps: dict[Node, Step] = {}
    for node in topology:
        steps[node] = _step(node, [steps[upstream] for upstream in node.upstreams])
    return Inferred(steps)


def _arrow(schema: Schema | None) -> pa.DataType | None:
    return schema.arrow if schema is not None else None


def _trace(function: Function, up: Step, *, pair: bool = False) -> tuple[Expr | None, str]:
    traced = trace_function(function, up.key, up.value)
    if isinstance(traced, Traced):
        if isinstance(traced.expr, TupleExpr) and not pair:
            return None, "it returns a tuple"
        return traced.expr, ""
    assert isinstance(traced, Untraceable)
    return None, traced.reason


@singledispatch
def _step(node: Node, ups: list[Step]) -> Step:  # noqa: ARG001 - every kind of node has the same two
    raise TypeError(f"no inference for {type(node).__name__}")


@_step.register
def _source(node: StreamSource, ups: list[Step]) -> Step:  # noqa: ARG001
    key, value = _arrow(node.key.schema), _arrow(node.value.schema)
    exprs, reason = _timestamp(node, key, value)
    return Step(key, value, exprs, reason, intact=True, topics=frozenset((node.topic,)))


@_step.register
def _table_source(node: TableSource, ups: list[Step]) -> Step:  # noqa: ARG001
    key, value = _arrow(node.key.schema), _arrow(node.value.schema)
    exprs, reason = _timestamp(node, key, value)
    return Step(key, value, exprs, reason, sharded=True, topics=frozenset((node.topic,)))


def _timestamp(
    node: StreamSource | TableSource, key: pa.DataType | None, value: pa.DataType | None
) -> tuple[tuple[Expr | None, ...], str]:
    if node.timestamps.function is None:
        return (), ""
    expr, reason = _trace(node.timestamps.function, Step(key, value))
    return (expr,), reason


@_step.register
def _filter(node: Filter, ups: list[Step]) -> Step:
    expr, reason = _trace(node.predicate, ups[0])
    return replace(ups[0], exprs=(expr,), reason=reason, plan=None, order_dependent=False)


@_step.register
def _branch(node: Branch, ups: list[Step]) -> Step:
    found = [_trace(predicate, ups[0]) for predicate in node.predicates]
    reason = next((reason for _, reason in found if reason), "")
    return replace(ups[0], exprs=tuple(expr for expr, _ in found), reason=reason, plan=None, order_dependent=False)


@_step.register(Arm)
@_step.register(Repartition)
def _same(node: Node, ups: list[Step]) -> Step:
    moved = isinstance(node, Repartition)
    return replace(ups[0], exprs=(), reason="", plan=None, order_dependent=False, sharded=moved or ups[0].sharded)


@_step.register(Peek)
@_step.register(Foreach)
def _action(node: Peek | Foreach, ups: list[Step]) -> Step:  # noqa: ARG001
    return replace(ups[0], exprs=(None,), reason="it has an effect outside", plan=None, order_dependent=False)


@_step.register
def _merge(node: Merge, ups: list[Step]) -> Step:  # noqa: ARG001
    first = ups[0]
    topics = frozenset[str]().union(*(up.topics for up in ups))
    same_key = all(up.key == first.key for up in ups)
    same_value = all(up.value == first.value for up in ups)
    return Step(
        first.key if same_key else None,
        first.value if same_value else None,
        intact=all(up.intact for up in ups) and same_value,
        rekeyed=any(up.rekeyed for up in ups) or not same_key or len(topics) > 1,
        topics=topics,
        sharded=all(up.sharded for up in ups) and same_key,
    )


@_step.register
def _map_values(node: MapValues, ups: list[Step]) -> Step:
    expr, reason = _trace(node.function, ups[0])
    return _mapped(ups[0], expr, reason, node.schema)


@_step.register
def _table_map_values(node: TableMapValues, ups: list[Step]) -> Step:
    expr, reason = _trace(node.function, ups[0])
    return _mapped(ups[0], expr, reason, node.schema)


def _mapped(up: Step, expr: Expr | None, reason: str, schema: Schema | None) -> Step:
    if schema is not None and expr is not None and expr.type != schema.arrow:
        expr, reason = None, f"the declared type {schema.ddl()} differs from the traced one"
    value = expr.type if expr is not None else _arrow(schema)
    return replace(up, value=value, exprs=(expr,), reason=reason, intact=False, plan=None, order_dependent=False)


@_step.register
def _table_filter(node: TableFilter, ups: list[Step]) -> Step:
    expr, reason = _trace(node.predicate, ups[0])
    return replace(ups[0], exprs=(expr,), reason=reason, plan=None, order_dependent=False)


@_step.register
def _map(node: Map, ups: list[Step]) -> Step:
    expr, reason = _trace(node.function, ups[0], pair=True)
    pair = isinstance(expr, TupleExpr) and len(expr.items) == 2
    if expr is not None and (not pair or node.schema is not None or node.key_schema is not None):
        expr, reason = None, "it does not return a pair of expressions"
    key = expr.type.field(0).type if expr is not None else _arrow(node.key_schema)
    value = expr.type.field(1).type if expr is not None else _arrow(node.schema)
    return Step(key, value, (expr,), reason, rekeyed=True, topics=ups[0].topics)


@_step.register
def _flat_map(node: FlatMap, ups: list[Step]) -> Step:
    reason = "it returns a list of records"
    topics = ups[0].topics
    return Step(_arrow(node.key_schema), _arrow(node.schema), (None,), reason, rekeyed=True, topics=topics)


@_step.register
def _flat_map_values(node: FlatMapValues, ups: list[Step]) -> Step:
    value = _arrow(node.schema)
    return replace(
        ups[0],
        value=value,
        exprs=(None,),
        reason="it returns a list of values",
        intact=False,
        plan=None,
        order_dependent=False,
    )


@_step.register
def _select_key(node: SelectKey, ups: list[Step]) -> Step:
    expr, reason = _trace(node.function, ups[0])
    if expr is not None and node.key_schema is not None and expr.type != node.key_schema.arrow:
        expr, reason = None, "the declared type of the key differs from the traced one"
    key = expr.type if expr is not None else _arrow(node.key_schema)
    return replace(
        ups[0], key=key, exprs=(expr,), reason=reason, rekeyed=True, sharded=False, plan=None, order_dependent=False
    )


@_step.register
def _aggregate(node: Aggregate, ups: list[Step]) -> Step:
    plan = plan_aggregation(node.aggregation, ups[0].key, ups[0].value)
    return Step(
        windowed_key(ups[0].key, node.window),
        plan.result,
        reason=plan.reason,
        rekeyed=True,
        sharded=node.window is None,
        plan=plan,
        order_dependent=plan.order_dependent and ups[0].rekeyed,
        window=node.window,
        topics=ups[0].topics,
    )


def windowed_key(key: pa.DataType | None, window: Tumbling | None) -> pa.DataType | None:
    """The key of a windowed table: the grouped key with the window's start and end."""
    if key is None or window is None:
        return key
    return pa.struct([pa.field("key", key), pa.field("start", pa.int64()), pa.field("end", pa.int64())])


@_step.register
def _to_table(node: ToTable, ups: list[Step]) -> Step:  # noqa: ARG001
    return Step(ups[0].key, ups[0].value, rekeyed=True, sharded=True, topics=ups[0].topics)


@_step.register
def _to_stream(node: ToStream, ups: list[Step]) -> Step:  # noqa: ARG001
    # The changes of a row come one after the other, from its shard, whatever the times they carry.
    return replace(
        ups[0], exprs=(), reason="", plan=None, order_dependent=False, intact=False, window=None, rekeyed=False
    )


@_step.register
def _sink(node: Sink, ups: list[Step]) -> Step:  # noqa: ARG001
    return replace(ups[0], exprs=(), reason="", plan=None, order_dependent=False)

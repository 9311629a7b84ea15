"""Sources, and steps that process one record at a time."""

from __future__ import annotations

from potok.expressions.expr import Expr
from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of, pre_shuffle_of
from potok.operators.core.read_topic import SourceReader
from potok.operators.core.record_metadata import Annotate as Annotated
from potok.operators.core.wiring import Wiring, wiring_of
from potok.operators.exchange.repartition import Exchange
from potok.operators.stateless import stateless
from potok.operators.tables.tables import Receive
from potok.topology.nodes import (
    Annotate,
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
    StreamSource,
)


def traced(node: Node, shop: OperatorFactory) -> Expr | None:
    """Return the expression of the only function of a node, if it was traced."""
    exprs = shop.step(node).exprs
    return exprs[0] if exprs else None


@post_shuffle_of(StreamSource)
def source(node: StreamSource, shop: OperatorFactory) -> Operator:
    return shop.reader(node)


@wiring_of(StreamSource)
def wire_source(node: StreamSource, wiring: Wiring) -> None:
    reader = wiring.step(node)
    if isinstance(reader, SourceReader):
        wiring.readers[node.topic] = reader


@post_shuffle_of(Filter)
def filter_(node: Filter, shop: OperatorFactory) -> Operator:
    return stateless.Filter(node.name, shop.task, node.predicate, traced(node, shop), node.negate)


@post_shuffle_of(Branch)
def branch(node: Branch, shop: OperatorFactory) -> Operator:
    arms = list(zip(node.predicates, shop.step(node).exprs, strict=True))
    return stateless.Branch(node.name, shop.task, arms)


@post_shuffle_of(Arm)
def arm(node: Arm, shop: OperatorFactory) -> Operator:
    return Operator(node.name, shop.task)


@post_shuffle_of(Map)
def map_(node: Map, shop: OperatorFactory) -> Operator:
    return stateless.Map(
        node.name,
        shop.task,
        node.function,
        traced(node, shop),
        node.key_schema,
        node.schema,
        null_stays=node.null_stays,
        value_parts=node.value_parts,
    )


@post_shuffle_of(MapValues)
def map_values(node: MapValues, shop: OperatorFactory) -> Operator:
    expr = traced(node, shop)
    return stateless.MapValues(node.name, shop.task, node.function, expr, node.schema, null_stays=node.null_stays)


@post_shuffle_of(SelectKey)
def select_key(node: SelectKey, shop: OperatorFactory) -> Operator:
    return stateless.SelectKey(node.name, shop.task, node.function, traced(node, shop), node.key_schema)


@post_shuffle_of(FlatMap)
def flat_map(node: FlatMap, shop: OperatorFactory) -> Operator:
    schemas = node.key_schema, node.schema
    return stateless.FlatMap(node.name, shop.task, node.function, *schemas, values_only=False)


@post_shuffle_of(Annotate)
def annotate(node: Annotate, shop: OperatorFactory) -> Operator:
    type_ = shop.step(node).value
    assert type_ is not None
    return Annotated(node.name, shop.task, node.fields, type_, shop.spec.input_partitions)


@post_shuffle_of(FlatMapValues)
def flat_map_values(node: FlatMapValues, shop: OperatorFactory) -> Operator:
    expr = traced(node, shop)
    if expr is not None:
        return stateless.Flatten(node.name, shop.task, node.function, expr)
    return stateless.FlatMap(node.name, shop.task, node.function, None, node.schema, values_only=True)


@post_shuffle_of(Peek, Foreach)
def action(node: Peek | Foreach, shop: OperatorFactory) -> Operator:
    return stateless.Peek(node.name, shop.task, node.action)


@post_shuffle_of(Merge)
def merge(node: Merge, shop: OperatorFactory) -> Operator:
    step = shop.step(node)
    return stateless.Merge(node.name, shop.task, dynamic_key=step.key is None, dynamic_value=step.value is None)


@pre_shuffle_of(Repartition)
def exchange(node: Repartition, shop: OperatorFactory) -> Operator:
    return Exchange(node.name, shop.task, shop.shuffle_writer, shop.level(node), shop.shards)


@post_shuffle_of(Repartition)
def repartition(node: Repartition, shop: OperatorFactory) -> Operator:
    return Receive(node.name, shop.task)

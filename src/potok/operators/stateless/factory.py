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
from potok.operators.stateless.map_batches import MapBatches as BatchMapper
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
    MapBatches,
    MapValues,
    Merge,
    Node,
    Peek,
    Repartition,
    SelectKey,
    StreamSource,
)


def traced(node: Node, factory: OperatorFactory) -> Expr | None:
    """Return the expression of the only function of a node, if it was traced."""
    exprs = factory.step(node).exprs
    return exprs[0] if exprs else None


@post_shuffle_of(StreamSource)
def source(node: StreamSource, factory: OperatorFactory) -> Operator:
    return factory.reader(node)


@wiring_of(StreamSource)
def wire_source(node: StreamSource, wiring: Wiring) -> None:
    reader = wiring.step(node)
    if isinstance(reader, SourceReader):
        wiring.readers[node.topic] = reader


@post_shuffle_of(Filter)
def filter_(node: Filter, factory: OperatorFactory) -> Operator:
    return stateless.Filter(node.name, factory.task, node.predicate, traced(node, factory), node.negate)


@post_shuffle_of(Branch)
def branch(node: Branch, factory: OperatorFactory) -> Operator:
    arms = list(zip(node.predicates, factory.step(node).exprs, strict=True))
    return stateless.Branch(node.name, factory.task, arms)


@post_shuffle_of(Arm)
def arm(node: Arm, factory: OperatorFactory) -> Operator:
    return Operator(node.name, factory.task)


@post_shuffle_of(Map)
def map_(node: Map, factory: OperatorFactory) -> Operator:
    return stateless.Map(
        node.name,
        factory.task,
        node.function,
        traced(node, factory),
        node.key_schema,
        node.schema,
        null_stays=node.null_stays,
        value_parts=node.value_parts,
    )


@post_shuffle_of(MapValues)
def map_values(node: MapValues, factory: OperatorFactory) -> Operator:
    expr = traced(node, factory)
    return stateless.MapValues(node.name, factory.task, node.function, expr, node.schema, null_stays=node.null_stays)


@post_shuffle_of(MapBatches)
def map_batches(node: MapBatches, factory: OperatorFactory) -> Operator:
    return BatchMapper(node, factory.task, compares=factory.spec.compares_batches)


@post_shuffle_of(SelectKey)
def select_key(node: SelectKey, factory: OperatorFactory) -> Operator:
    return stateless.SelectKey(node.name, factory.task, node.function, traced(node, factory), node.key_schema)


@post_shuffle_of(FlatMap)
def flat_map(node: FlatMap, factory: OperatorFactory) -> Operator:
    schemas = node.key_schema, node.schema
    return stateless.FlatMap(node.name, factory.task, node.function, *schemas, values_only=False)


@post_shuffle_of(Annotate)
def annotate(node: Annotate, factory: OperatorFactory) -> Operator:
    type_ = factory.step(node).value
    assert type_ is not None
    return Annotated(node.name, factory.task, node.fields, type_, factory.spec.input_partitions)


@post_shuffle_of(FlatMapValues)
def flat_map_values(node: FlatMapValues, factory: OperatorFactory) -> Operator:
    expr = traced(node, factory)
    if expr is not None:
        return stateless.Flatten(node.name, factory.task, node.function, expr)
    return stateless.FlatMap(node.name, factory.task, node.function, None, node.schema, values_only=True)


@post_shuffle_of(Peek, Foreach)
def action(node: Peek | Foreach, factory: OperatorFactory) -> Operator:
    return stateless.Peek(node.name, factory.task, node.action)


@post_shuffle_of(Merge)
def merge(node: Merge, factory: OperatorFactory) -> Operator:
    step = factory.step(node)
    return stateless.Merge(node.name, factory.task, dynamic_key=step.key is None, dynamic_value=step.value is None)


@pre_shuffle_of(Repartition)
def exchange(node: Repartition, factory: OperatorFactory) -> Operator:
    return Exchange(node.name, factory.task, factory.shuffle_writer, factory.level(node), factory.shards)


@post_shuffle_of(Repartition)
def repartition(node: Repartition, factory: OperatorFactory) -> Operator:
    return Receive(node.name, factory.task)

"""Joins of streams: how each side reaches the shard of its key, and the post-shuffle operators."""

from __future__ import annotations

from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of, sender_of
from potok.operators.core.processing_order import ProcessingOrder
from potok.operators.core.wiring import Wiring, wiring_of
from potok.operators.joins import stream_join, stream_table_join, versioned_table_join
from potok.operators.joins.join_side import JoinSide, Reach, SendSide
from potok.operators.joins.pairing import Joiner
from potok.operators.stateless.factory import traced
from potok.topology.inference.joins import fields_of_side, projected, readable_rows
from potok.topology.nodes import Node
from potok.topology.nodes.joins import (
    HistoryFilter,
    HistoryLookup,
    HistoryMapValues,
    LookupKey,
    StreamJoin,
    TableLookup,
    TableRecords,
)


def _joiner(node: StreamJoin | TableLookup | HistoryLookup, factory: OperatorFactory) -> Joiner:
    return Joiner(node.function, traced(node, factory), node.schema)


def _side(node: StreamJoin, factory: OperatorFactory, index: int) -> JoinSide:
    earlier, later = node.window.reach_ms(index)
    reach = Reach(earlier, later, node.window.grace_ms)
    return JoinSide(node.name, factory.task, fields_of_side(factory.step(node), index), reach)


@sender_of(StreamJoin)
def send_side(node: StreamJoin, factory: OperatorFactory, index: int, edge: str) -> Operator:
    return SendSide(
        edge, factory.task, _side(node, factory, index), factory.shuffle_writer, factory.level(node), factory.shards
    )


@post_shuffle_of(StreamJoin)
def join_streams(node: StreamJoin, factory: OperatorFactory) -> Operator:
    step, ups = factory.step(node), (factory.step(node.left), factory.step(node.right))
    return stream_join.StreamJoin(
        node.name,
        factory.task,
        node.how,
        node.window,
        _joiner(node, factory),
        step.key,
        (projected(ups[0].value, fields_of_side(step, 0)), projected(ups[1].value, fields_of_side(step, 1))),
        (_side(node, factory, 0), _side(node, factory, 1)),
        factory.state,
        factory.watermark(node),
        factory.spec.input_partitions,
        keeps_headers=node.keeps_headers,
    )


def _lookup_side(node: TableLookup | HistoryLookup, factory: OperatorFactory, index: int) -> JoinSide:
    """Return the side of a lookup: records that compute their lookup key may have none."""
    if index == 1:
        return JoinSide(node.name, factory.task, silent=True)
    looks_up = bool(factory.step(node.stream).home)
    return JoinSide(node.name, factory.task, fields_of_side(factory.step(node), 0), keyless=looks_up)


@sender_of(TableLookup, HistoryLookup)
def send_to_lookup(node: TableLookup | HistoryLookup, factory: OperatorFactory, index: int, edge: str) -> Operator:
    return SendSide(
        edge,
        factory.task,
        _lookup_side(node, factory, index),
        factory.shuffle_writer,
        factory.level(node),
        factory.shards,
    )


def _row_fields(node: Node, factory: OperatorFactory) -> tuple[str, ...] | None:
    """Return the fields of a row that the joiner reads; all of them if it reads none, because a row must differ from
    no row."""
    return fields_of_side(factory.step(node), 1) or None


def _turns(factory: OperatorFactory) -> ProcessingOrder:
    tables = frozenset[str]().union(*(group.tables for group in factory.plan.aligned))
    return ProcessingOrder([input_partition.topic in tables for input_partition in factory.spec.input_partitions])


@post_shuffle_of(TableLookup)
def look_up(node: TableLookup, factory: OperatorFactory) -> Operator:
    return stream_table_join.TableLookup(
        node.name,
        factory.task,
        node.how,
        _joiner(node, factory),
        factory.step(node.stream).key,
        factory.step(node.table).value,
        _row_fields(node, factory),
        [_lookup_side(node, factory, 0), _lookup_side(node, factory, 1)],
        factory.state,
        readable_rows(node, factory.plan.inferred.steps),
        _turns(factory),
    )


@post_shuffle_of(HistoryLookup)
def look_back(node: HistoryLookup, factory: OperatorFactory) -> Operator:
    stream = factory.step(node.stream)
    return versioned_table_join.HistoryLookup(
        node.name,
        factory.task,
        node.how,
        _joiner(node, factory),
        stream.key,
        stream.home,
        projected(stream.value, fields_of_side(factory.step(node), 0)),
        factory.step(node.table).value,
        _row_fields(node, factory),
        (node.grace_ms, node.history_ms),
        [_lookup_side(node, factory, 0), _lookup_side(node, factory, 1)],
        factory.state,
        factory.watermark(node),
        factory.spec.input_partitions,
        _turns(factory),
    )


@post_shuffle_of(LookupKey)
def lookup_key(node: LookupKey, factory: OperatorFactory) -> Operator:
    return stream_table_join.LookupKey(node.name, factory.task, node.function, traced(node, factory), node.key_schema)


@post_shuffle_of(TableRecords)
def table_records(node: TableRecords, factory: OperatorFactory) -> Operator:
    return Operator(node.name, factory.task)


@wiring_of(TableRecords)
def wire_table_records(node: TableRecords, wiring: Wiring) -> None:
    """Take the records where the table is read, not from the table."""
    if wiring.is_here(node):
        records = wiring.add(wiring.operator_factory.post_shuffle(node))
        wiring.readers[node.upstream.topic].downstream.append(records)
        wiring.end_with(node, records)


@post_shuffle_of(HistoryFilter)
def history_filter(node: HistoryFilter, factory: OperatorFactory) -> Operator:
    return versioned_table_join.HistoryFilter(
        node.name, factory.task, node.predicate, traced(node, factory), node.negate
    )


@post_shuffle_of(HistoryMapValues)
def history_map_values(node: HistoryMapValues, factory: OperatorFactory) -> Operator:
    return versioned_table_join.HistoryMapValues(
        node.name, factory.task, node.function, traced(node, factory), node.schema
    )

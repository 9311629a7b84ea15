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


def _joiner(node: StreamJoin | TableLookup | HistoryLookup, shop: OperatorFactory) -> Joiner:
    return Joiner(node.function, traced(node, shop), node.schema)


def _side(node: StreamJoin, shop: OperatorFactory, index: int) -> JoinSide:
    earlier, later = node.window.reach_ms(index)
    reach = Reach(earlier, later, node.window.grace_ms)
    return JoinSide(node.name, shop.task, fields_of_side(shop.step(node), index), reach)


@sender_of(StreamJoin)
def send_side(node: StreamJoin, shop: OperatorFactory, index: int, edge: str) -> Operator:
    return SendSide(edge, shop.task, _side(node, shop, index), shop.shuffle_writer, shop.level(node), shop.shards)


@post_shuffle_of(StreamJoin)
def join_streams(node: StreamJoin, shop: OperatorFactory) -> Operator:
    step, ups = shop.step(node), (shop.step(node.left), shop.step(node.right))
    return stream_join.StreamJoin(
        node.name,
        shop.task,
        node.how,
        node.window,
        _joiner(node, shop),
        step.key,
        (projected(ups[0].value, fields_of_side(step, 0)), projected(ups[1].value, fields_of_side(step, 1))),
        (_side(node, shop, 0), _side(node, shop, 1)),
        shop.state,
        shop.clock(node),
        shop.spec.input_partitions,
        keeps_headers=node.keeps_headers,
    )


def _lookup_side(node: TableLookup | HistoryLookup, shop: OperatorFactory, index: int) -> JoinSide:
    """Return the side of a lookup: records that compute their lookup key may have none."""
    if index == 1:
        return JoinSide(node.name, shop.task, silent=True)
    looks_up = bool(shop.step(node.stream).home)
    return JoinSide(node.name, shop.task, fields_of_side(shop.step(node), 0), keyless=looks_up)


@sender_of(TableLookup, HistoryLookup)
def send_to_lookup(node: TableLookup | HistoryLookup, shop: OperatorFactory, index: int, edge: str) -> Operator:
    return SendSide(
        edge, shop.task, _lookup_side(node, shop, index), shop.shuffle_writer, shop.level(node), shop.shards
    )


def _row_fields(node: Node, shop: OperatorFactory) -> tuple[str, ...] | None:
    """Return the fields of a row that the joiner reads; all of them if it reads none, because a row must differ from
    no row."""
    return fields_of_side(shop.step(node), 1) or None


def _turns(shop: OperatorFactory) -> ProcessingOrder:
    tables = frozenset[str]().union(*(group.tables for group in shop.plan.aligned))
    return ProcessingOrder([input_partition.topic in tables for input_partition in shop.spec.input_partitions])


@post_shuffle_of(TableLookup)
def look_up(node: TableLookup, shop: OperatorFactory) -> Operator:
    return stream_table_join.TableLookup(
        node.name,
        shop.task,
        node.how,
        _joiner(node, shop),
        shop.step(node.stream).key,
        shop.step(node.table).value,
        _row_fields(node, shop),
        [_lookup_side(node, shop, 0), _lookup_side(node, shop, 1)],
        shop.state,
        readable_rows(node, shop.plan.inferred.steps),
        _turns(shop),
    )


@post_shuffle_of(HistoryLookup)
def look_back(node: HistoryLookup, shop: OperatorFactory) -> Operator:
    stream = shop.step(node.stream)
    return versioned_table_join.HistoryLookup(
        node.name,
        shop.task,
        node.how,
        _joiner(node, shop),
        stream.key,
        stream.home,
        projected(stream.value, fields_of_side(shop.step(node), 0)),
        shop.step(node.table).value,
        _row_fields(node, shop),
        (node.grace_ms, node.history_ms),
        [_lookup_side(node, shop, 0), _lookup_side(node, shop, 1)],
        shop.state,
        shop.clock(node),
        shop.spec.input_partitions,
        _turns(shop),
    )


@post_shuffle_of(LookupKey)
def lookup_key(node: LookupKey, shop: OperatorFactory) -> Operator:
    return stream_table_join.LookupKey(node.name, shop.task, node.function, traced(node, shop), node.key_schema)


@post_shuffle_of(TableRecords)
def table_records(node: TableRecords, shop: OperatorFactory) -> Operator:
    return Operator(node.name, shop.task)


@wiring_of(TableRecords)
def wire_table_records(node: TableRecords, wiring: Wiring) -> None:
    """Take the records where the table is read, not from the table."""
    if wiring.is_here(node):
        records = wiring.add(wiring.operator_factory.post_shuffle(node))
        wiring.readers[node.upstream.topic].downstream.append(records)
        wiring.end_with(node, records)


@post_shuffle_of(HistoryFilter)
def history_filter(node: HistoryFilter, shop: OperatorFactory) -> Operator:
    return versioned_table_join.HistoryFilter(node.name, shop.task, node.predicate, traced(node, shop), node.negate)


@post_shuffle_of(HistoryMapValues)
def history_map_values(node: HistoryMapValues, shop: OperatorFactory) -> Operator:
    return versioned_table_join.HistoryMapValues(node.name, shop.task, node.function, traced(node, shop), node.schema)

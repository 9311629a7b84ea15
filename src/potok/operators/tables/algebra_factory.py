"""Groups of the rows of a table, and joins of tables."""

from __future__ import annotations

from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of
from potok.operators.joins.foreign_key import ForeignKeys, MatchRows
from potok.operators.joins.foreign_key_result import SettleRows
from potok.operators.joins.table_join import JoinTables
from potok.operators.joins.table_joiner import TableJoiner
from potok.operators.stateless.factory import traced
from potok.operators.tables.group_accumulators import group_accumulator_of
from potok.operators.tables.group_rows import AccumulateGroups
from potok.operators.tables.table_groups import GroupChanges
from potok.records.schemas.declared_schema import declared_schema
from potok.topology.nodes import ForeignJoin, ForeignKey, ForeignMatch, TableAggregate, TableGroup, TableJoin
from potok.topology.nodes.joins import JoinKind


@post_shuffle_of(TableGroup)
def group(node: TableGroup, shop: OperatorFactory) -> Operator:
    schemas = node.key_schema, node.schema
    made = GroupChanges(node.name, shop.task, node.function, traced(node, shop), schemas, pairs=node.pairs)
    made.every_update = node.every_update
    return made


@post_shuffle_of(TableAggregate)
def aggregate(node: TableAggregate, shop: OperatorFactory) -> Operator:
    step, aggregation = shop.step(node), node.aggregation
    of_user = aggregation.kind in ("reduce", "fold")
    function = None if of_user else aggregation.function
    return AccumulateGroups(
        node.name,
        shop.task,
        group_accumulator_of(aggregation, node.subtractor, shop.step(node.upstream).value),
        None if function is None else (function, traced(node, shop)),
        (step.key, step.value),
        shop.state,
        checked=aggregation.schema is not None or aggregation.kind == "sum",
        keeps_empty=node.keeps_empty,
        every_update=node.every_update,
    )


@post_shuffle_of(TableJoin)
def join(node: TableJoin, shop: OperatorFactory) -> Operator:
    step = shop.step(node)
    joiner = TableJoiner(node.function, node.how, node.schema, step.value)
    windows = step.window, shop.clock(node)
    return JoinTables(node.name, shop.task, joiner, step.key, shop.state, *windows, every_update=node.every_update)


@post_shuffle_of(ForeignKey)
def foreign_key(node: ForeignKey, shop: OperatorFactory) -> Operator:
    """Return the foreign keys: they are compared with the keys of the other table, so they have that type."""
    match = next(match for match in shop.plan.topology.of_type(ForeignMatch) if match.left is node)
    key_type = shop.step(match.right).key
    expr = None if key_type is None else traced(node, shop)
    nulls_stay = node.how is JoinKind.LEFT
    made = ForeignKeys(node.name, shop.task, node.function, expr, declared_schema(key_type), nulls_stay=nulls_stay)
    made.step = node.step
    return made


@post_shuffle_of(ForeignMatch)
def foreign_match(node: ForeignMatch, shop: OperatorFactory) -> Operator:
    step = shop.step(node)
    joiner = TableJoiner(node.function, node.how, node.schema, step.value)
    made = MatchRows(node.name, shop.task, joiner, step.key, shop.state, every_update=node.every_update)
    made.step = node.step
    return made


@post_shuffle_of(ForeignJoin)
def foreign_join(node: ForeignJoin, shop: OperatorFactory) -> Operator:
    step = shop.step(node)
    return SettleRows(node.name, shop.task, step.key, step.value, every_update=node.upstream.every_update)

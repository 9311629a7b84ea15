"""Tables whose rows replace each other, and steps on the changes of a table."""

from __future__ import annotations

import pyarrow as pa

from potok.operators.aggregates.accumulators import Latest
from potok.operators.aggregates.row_aggregates import AccumulateRecords
from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of, pre_shuffle_of
from potok.operators.core.record_metadata import Annotate
from potok.operators.core.wiring import Wiring, wiring_of
from potok.operators.exchange.repartition import RepartitionRecords
from potok.operators.joins.foreign_key import ForeignKeys, MatchRows, SettleRows
from potok.operators.joins.table_join import JoinTables
from potok.operators.joins.table_joiner import TableJoiner
from potok.operators.stateless.factory import traced
from potok.operators.tables import tables
from potok.operators.tables.group_accumulators import group_accumulator_of
from potok.operators.tables.group_rows import AccumulateGroups
from potok.operators.tables.table_groups import GroupChanges
from potok.operators.tables.time_to_live import KeepWithTimeToLive
from potok.operators.tables.versions import KeepVersions
from potok.operators.windows import suppress as suppressing
from potok.records.schemas.declared_schema import declared_schema
from potok.topology.nodes import (
    ForeignJoin,
    ForeignKey,
    ForeignMatch,
    Suppress,
    TableAggregate,
    TableFilter,
    TableGroup,
    TableJoin,
    TableMapValues,
    TableSource,
    ToStream,
    ToTable,
)
from potok.topology.nodes.joins import JoinKind


@post_shuffle_of(ToStream)
def to_stream(node: ToStream, factory: OperatorFactory) -> Operator:
    return tables.ToStream(node.name, factory.task, changes=node.changes)


@post_shuffle_of(TableFilter)
def table_filter(node: TableFilter, factory: OperatorFactory) -> Operator:
    return tables.TableFilter(node.name, factory.task, node.predicate, traced(node, factory), node.negate)


@post_shuffle_of(TableMapValues)
def table_map_values(node: TableMapValues, factory: OperatorFactory) -> Operator:
    return tables.TableMapValues(node.name, factory.task, node.function, traced(node, factory), node.schema)


@post_shuffle_of(Suppress)
def suppress(node: Suppress, factory: OperatorFactory) -> Operator:
    step = factory.step(node)
    types = step.key, step.value
    return suppressing.Suppress(
        node.name, factory.task, step.window, node.every_ms, types, factory.state, factory.watermark(node)
    )


@pre_shuffle_of(TableSource, ToTable)
def repartition(node: TableSource | ToTable, factory: OperatorFactory) -> Operator:
    return RepartitionRecords(
        node.name, factory.task, None, factory.shuffle_writer, factory.level(node), factory.shards
    )


@wiring_of(TableSource)
def wire_source(node: TableSource, wiring: Wiring) -> None:
    """Read the topic on the first level, and store the rows on the level of the table."""
    factory = wiring.operator_factory
    if wiring.is_first():
        reader = wiring.readers[node.topic] = factory.reader(node)
        last = wiring.add(reader)
        if node.about:
            value = factory.step(node).value
            assert value is not None
            last = wiring.add(Annotate(node.name, factory.task, node.about, value, factory.spec.input_partitions), last)
        wiring.add(factory.pre_shuffle(node), last)
    wiring.step(node)


@post_shuffle_of(TableSource, ToTable)
def latest(node: TableSource | ToTable, factory: OperatorFactory) -> Operator:
    step = factory.step(node)
    by_time = isinstance(node, ToTable) and factory.step(node.upstream).rekeyed
    kind = AccumulateRecords if by_time else tables.KeepByPosition
    types = step.key, step.value
    if node.lifetime.ttl_ms is not None:
        kept = (
            node.name,
            factory.task,
            node.lifetime,
            types,
            factory.state,
            factory.watermark(node),
            factory.spec.input_partitions,
        )
        return KeepWithTimeToLive(*kept, by_time=by_time)
    if node.lifetime.history_ms is not None:
        history_ms = node.lifetime.history_ms
        return KeepVersions(
            node.name,
            factory.task,
            history_ms,
            types,
            factory.state,
            factory.watermark(node),
            factory.spec.input_partitions,
        )
    made = kind(
        node.name,
        factory.task,
        Latest(),
        None,
        *types,
        factory.state,
        factory.watermark(node),
        factory.spec.input_partitions,
        each_record=node in factory.plan.looked_up,
    )
    if isinstance(made, tables.KeepByPosition):
        made.every_update = isinstance(node, TableSource) and node.every_update
    return made


@post_shuffle_of(TableGroup)
def group(node: TableGroup, factory: OperatorFactory) -> Operator:
    schemas = node.key_schema, node.schema
    made = GroupChanges(node.name, factory.task, node.function, traced(node, factory), schemas, pairs=node.pairs)
    made.every_update = node.every_update
    return made


@post_shuffle_of(TableAggregate)
def aggregate(node: TableAggregate, factory: OperatorFactory) -> Operator:
    step, aggregation = factory.step(node), node.aggregation
    of_user = aggregation.kind in ("reduce", "fold")
    function = None if of_user else aggregation.function
    return AccumulateGroups(
        node.name,
        factory.task,
        group_accumulator_of(aggregation, node.subtractor, factory.step(node.upstream).value),
        None if function is None else (function, traced(node, factory)),
        (step.key, step.value),
        factory.state,
        checked=aggregation.schema is not None or aggregation.kind in ("sum", "reduce"),
        keeps_empty=node.keeps_empty,
        every_update=node.every_update,
    )


@post_shuffle_of(TableJoin)
def join(node: TableJoin, factory: OperatorFactory) -> Operator:
    step = factory.step(node)
    joiner = TableJoiner(node.function, node.how, node.schema, step.value, _types(node, factory))
    windows = step.window, factory.watermark(node)
    return JoinTables(
        node.name, factory.task, joiner, step.key, factory.state, *windows, every_update=node.every_update
    )


def _types(node: TableJoin | ForeignMatch, factory: OperatorFactory) -> tuple[pa.DataType | None, ...]:
    """Return the types of the key and of both rows that a joiner sees."""
    left, right = factory.step(node.left), factory.step(node.right)
    key = left.home[0] if isinstance(node, ForeignMatch) else left.key
    return key, left.value, right.value


@post_shuffle_of(ForeignKey)
def foreign_key(node: ForeignKey, factory: OperatorFactory) -> Operator:
    """Return the foreign keys: they are compared with the keys of the other table, so they have that type."""
    match = next(match for match in factory.plan.topology.of_type(ForeignMatch) if match.left is node)
    key_type = factory.step(match.right).key
    expr = None if key_type is None else traced(node, factory)
    nulls_stay = node.how is JoinKind.LEFT
    made = ForeignKeys(node.name, factory.task, node.function, expr, declared_schema(key_type), nulls_stay=nulls_stay)
    made.step = node.step
    return made


@post_shuffle_of(ForeignMatch)
def foreign_match(node: ForeignMatch, factory: OperatorFactory) -> Operator:
    step = factory.step(node)
    joiner = TableJoiner(node.function, node.how, node.schema, step.value, _types(node, factory))
    made = MatchRows(node.name, factory.task, joiner, step.key, factory.state, every_update=node.every_update)
    made.step = node.step
    return made


@post_shuffle_of(ForeignJoin)
def foreign_join(node: ForeignJoin, factory: OperatorFactory) -> Operator:
    step = factory.step(node)
    return SettleRows(node.name, factory.task, step.key, step.value, every_update=node.upstream.every_update)

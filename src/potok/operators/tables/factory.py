"""Tables whose rows replace each other, and steps on the changes of a table."""

from __future__ import annotations

from potok.operators.aggregates.accumulators import Latest
from potok.operators.aggregates.row_aggregates import AccumulateRecords
from potok.operators.core.operator import Operator
from potok.operators.core.operator_factory import OperatorFactory, post_shuffle_of, pre_shuffle_of
from potok.operators.core.record_metadata import Annotate
from potok.operators.core.wiring import Wiring, wiring_of
from potok.operators.exchange.repartition import RepartitionRecords
from potok.operators.stateless.factory import traced
from potok.operators.tables import tables
from potok.operators.tables.time_to_live import KeepWithTimeToLive
from potok.operators.tables.versions import KeepVersions
from potok.operators.windows import suppress as suppressing
from potok.topology.nodes import Suppress, TableFilter, TableMapValues, TableSource, ToStream, ToTable


@post_shuffle_of(ToStream)
def to_stream(node: ToStream, shop: OperatorFactory) -> Operator:
    return tables.ToStream(node.name, shop.task, changes=node.changes)


@post_shuffle_of(TableFilter)
def table_filter(node: TableFilter, shop: OperatorFactory) -> Operator:
    return tables.TableFilter(node.name, shop.task, node.predicate, traced(node, shop), node.negate)


@post_shuffle_of(TableMapValues)
def table_map_values(node: TableMapValues, shop: OperatorFactory) -> Operator:
    return tables.TableMapValues(node.name, shop.task, node.function, traced(node, shop), node.schema)


@post_shuffle_of(Suppress)
def suppress(node: Suppress, shop: OperatorFactory) -> Operator:
    step = shop.step(node)
    types = step.key, step.value
    return suppressing.Suppress(node.name, shop.task, step.window, node.every_ms, types, shop.state, shop.clock(node))


@pre_shuffle_of(TableSource, ToTable)
def ship(node: TableSource | ToTable, shop: OperatorFactory) -> Operator:
    return RepartitionRecords(node.name, shop.task, None, shop.shuffle_writer, shop.level(node), shop.shards)


@wiring_of(TableSource)
def wire_source(node: TableSource, wiring: Wiring) -> None:
    """Read the topic on the first level, and store the rows on the level of the table."""
    shop = wiring.operator_factory
    if wiring.is_first():
        reader = wiring.readers[node.topic] = shop.reader(node)
        last = wiring.add(reader)
        if node.about:
            value = shop.step(node).value
            assert value is not None
            last = wiring.add(Annotate(node.name, shop.task, node.about, value, shop.spec.input_partitions), last)
        wiring.add(shop.pre_shuffle(node), last)
    wiring.step(node)


@post_shuffle_of(TableSource, ToTable)
def latest(node: TableSource | ToTable, shop: OperatorFactory) -> Operator:
    step = shop.step(node)
    by_time = isinstance(node, ToTable) and shop.step(node.upstream).rekeyed
    kind = AccumulateRecords if by_time else tables.KeepByPosition
    types = step.key, step.value
    if node.lifetime.ttl_ms is not None:
        kept = node.name, shop.task, node.lifetime, types, shop.state, shop.clock(node), shop.spec.input_partitions
        return KeepWithTimeToLive(*kept, by_time=by_time)
    if node.lifetime.history_ms is not None:
        history_ms = node.lifetime.history_ms
        return KeepVersions(
            node.name, shop.task, history_ms, types, shop.state, shop.clock(node), shop.spec.input_partitions
        )
    made = kind(
        node.name,
        shop.task,
        Latest(),
        None,
        *types,
        shop.state,
        shop.clock(node),
        shop.spec.input_partitions,
        each_record=node in shop.plan.looked_up,
    )
    if isinstance(made, tables.KeepByPosition):
        made.every_update = isinstance(node, TableSource) and node.every_update
    return made

"""From the nodes of a topology to operators at work."""

from __future__ import annotations

from dataclasses import dataclass

from potok.engine.batch_spec import BatchSpec
from potok.engine.plan import Plan
from potok.engine.read import SourceReader
from potok.engine.report import Report
from potok.engine.sink import SinkWriter
from potok.kernels import stateless, tables
from potok.kernels.aggregates import Aggregate as MergeAggregate
from potok.kernels.expiry import NEVER
from potok.kernels.fold import FoldRecords
from potok.kernels.folders import Latest, folder_of
from potok.kernels.lookups import fields_read
from potok.kernels.operator import Operator, Task
from potok.kernels.outbox import Outbox
from potok.kernels.pre_aggregate import PreAggregate
from potok.kernels.ship import Exchange, ShipRecords
from potok.log.broker import Broker
from potok.state.session import StateSession
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
)


@dataclass(slots=True)
class Workshop:
    """Makes the operators of one stage in one task, on one shard."""

    plan: Plan
    spec: BatchSpec
    task: Task
    broker: Broker
    outbox: Outbox
    report: Report
    session: StateSession | None

    def head(self, node: Node) -> Operator:
        """What a step with state does with records before they move to their shard."""
        shards, level = self.plan.shards, self.plan.levels[node]
        if isinstance(node, Repartition):
            return Exchange(node.name, self.task, self.outbox, level, shards)
        if isinstance(node, Aggregate):
            plan = self.plan.inferred[node].plan
            assert plan is not None
            if plan.native:
                return PreAggregate(node.name, self.task, plan, node.window, self.outbox, level, shards)
            function = node.aggregation.function if node.aggregation.kind not in ("fold", "reduce") else None
            selector = (function, plan.selector) if function is not None else None
            fields = self._fields(node)
            return ShipRecords(node.name, self.task, node.window, self.outbox, level, shards, selector, fields)
        return ShipRecords(node.name, self.task, None, self.outbox, level, shards)

    def _fields(self, node: Aggregate) -> frozenset[str] | None:
        """What an aggregator looks up in a value, if it does nothing else with it."""
        function = node.aggregation.function
        if node.aggregation.kind != "fold" or function is None:
            return None
        return fields_read(function.callable, function.arity - 2)

    def body(self, node: Node) -> Operator:
        """The step itself."""
        step, task, name = self.plan.inferred[node], self.task, node.name
        expr = step.exprs[0] if step.exprs else None
        match node:
            case StreamSource():
                return SourceReader(node, task, step, self.plan.columns[node.topic], self.broker)
            case Filter():
                return stateless.Filter(name, task, node.predicate, expr, node.negate)
            case Branch():
                return stateless.Branch(name, task, list(zip(node.predicates, step.exprs, strict=True)))
            case Map():
                return stateless.Map(name, task, node.function, expr, node.key_schema, node.schema)
            case MapValues():
                return stateless.MapValues(name, task, node.function, expr, node.schema)
            case SelectKey():
                return stateless.SelectKey(name, task, node.function, expr, node.key_schema)
            case FlatMap():
                return stateless.FlatMap(name, task, node.function, node.key_schema, node.schema, values_only=False)
            case FlatMapValues():
                return stateless.FlatMap(name, task, node.function, None, node.schema, values_only=True)
            case Peek() | Foreach():
                return stateless.Peek(name, task, node.action)
            case Arm():
                return Operator(name, task)
            case Merge():
                return stateless.Merge(name, task, dynamic_key=step.key is None, dynamic_value=step.value is None)
            case ToStream():
                return tables.ToStream(name, task)
            case TableFilter():
                return tables.TableFilter(name, task, node.predicate, expr, node.negate)
            case TableMapValues():
                return tables.TableMapValues(name, task, node.function, expr, node.schema)
            case Sink():
                return self._sink(node)
            case _:
                return self._stateful(node)

    def _sink(self, node: Sink) -> Operator:
        sources = [s for s in self.plan.topology.sources if s.topic in self.plan.topology.upstream_topics(node)]
        formats = {source.value.format for source in sources}
        return SinkWriter(
            node.name,
            self.task,
            node.topic,
            self.spec.partitions[node.topic],
            (node.key_format, node.value_format),
            formats.pop() if len(formats) == 1 else "",
            self.broker,
            self.spec.staging,
            self.report,
        )

    def _stateful(self, node: Node) -> Operator:
        assert self.session is not None
        step = self.plan.inferred[node]
        clock = self.spec.clocks.get(node.name, NEVER)
        lanes = self.spec.lanes
        if isinstance(node, Repartition):
            return tables.Receive(node.name, self.task)
        if isinstance(node, Aggregate):
            key_type = self.plan.inferred[node.upstream].key
            plan = step.plan
            assert plan is not None
            if plan.native:
                return MergeAggregate(node.name, self.task, plan, node.window, key_type, self.session, clock)
            folder = folder_of(node.aggregation)
            return FoldRecords(
                node.name,
                self.task,
                folder,
                node.window,
                key_type,
                plan.result,
                self.session,
                clock,
                lanes,
                declared=node.aggregation.schema is not None,
            )
        assert isinstance(node, TableSource | ToTable)
        by_time = isinstance(node, ToTable) and self.plan.inferred[node.upstream].rekeyed
        kind = FoldRecords if by_time else tables.KeepByPosition
        return kind(node.name, self.task, Latest(), None, step.key, step.value, self.session, clock, lanes)


def has_head(node: Node) -> bool:
    """Whether a step begins with a part that runs before its records move."""
    return isinstance(node, Aggregate | ToTable | TableSource | Repartition)

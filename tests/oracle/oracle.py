"""Recomputes what a topology must have made of its whole input: record by record, with a dict for each table.

Nothing here is shared with the engine or its kernels: no batches, no shards, no columns, no tracing. Unless asked
otherwise it reads the partitions one after the other, since what is promised does not depend on how they interleave;
where a stream is joined with a table and does not wait, the oldest record first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from potok.events.event_type import EventTypes
from potok.topology.graph import Topology
from potok.topology.nodes import (
    Aggregate,
    AggregateRoot,
    Branch,
    Channel,
    Node,
    Saga,
    Sink,
    StoreTable,
    StreamSource,
    Suppress,
    TableFilter,
    TableLookup,
    TableMapValues,
    TableRecords,
    TableSource,
    Timeouts,
    ToStream,
    ToTable,
)
from tests.oracle.aggregate_roots import RootSteps, root_rows, root_steps
from tests.oracle.call import UserError, call
from tests.oracle.canonical import seen_value
from tests.oracle.decode import Undecodable, decode
from tests.oracle.event_time import Unreadable, event_time, next_stream_time
from tests.oracle.event_windows import Failed, rows_of_aggregate
from tests.oracle.events import events_in
from tests.oracle.joins import Pair, RowsAtHand, joins_of, way_to_join
from tests.oracle.lifetimes import MortalRows, latest_rows
from tests.oracle.processors import TIMEOUTS, Failure, Own, Sent, own_steps, stored_rows
from tests.oracle.records import LOST, DeadLetter, Expected, Input, Item, Output, Position, Written
from tests.oracle.saga_handler_steps import SagaHandlers
from tests.oracle.saga_steps import SagaSteps, saga_steps
from tests.oracle.stateless import arm_of, outcome
from tests.oracle.suppress import HeldRows, window_of
from tests.oracle.table_algebra import algebra_of, rows_of
from tests.oracle.table_joins import JoinRows
from tests.oracle.tables import Change, DerivedRows, LatestRows, SetAside, from_table, key_changed
from tests.oracle.turns import Fields, Inputs, Turn, order_of


def recompute(
    topology: Topology, inputs: Inputs, *, fields: Fields | None = None, turns: Iterable[Turn] | None = None
) -> Expected:
    """The final tables, the output topics and the dead letters.

    Args:
        topology: As the DSL built it.
        inputs: The records of each source topic by partition; partitions without records may be left out.
        fields: For each topic the fields that are looked at: only these can be wrong. All of them if left out.
        turns: A topic and a partition for each record: whose next record is read.
    """
    walk = _Walk(topology, fields or {})
    offsets: Counter[Turn] = Counter()
    for topic, partition in order_of(topology, inputs, fields or {}) if turns is None else turns:
        offset = offsets[topic, partition]
        walk.read(Position(topic, partition, offset), inputs[topic][partition][offset])
        offsets[topic, partition] += 1
    walk.close()
    return walk.expected()


def _is_channel(node: Node, index: int) -> bool:
    return isinstance(node, Channel) and node.index == index


class _Walk:
    """One pass of all records through all steps."""

    def __init__(self, topology: Topology, fields: Fields) -> None:
        self.topology = topology
        self.fields = fields
        self.sources = {source.topic: source for source in topology.sources}
        self.stream_times: dict[Turn, int] = {}
        self.aggregates = {node: rows_of_aggregate(node) for node in topology.of_type(Aggregate)}
        self.latest: dict[Node, LatestRows] = {node: latest_rows(node, False) for node in topology.of_type(TableSource)}
        self.latest |= {node: latest_rows(node, key_changed(node)) for node in topology.of_type(ToTable)}
        self.mortal = {node: rows for node, rows in self.latest.items() if isinstance(rows, MortalRows)}
        self.derived: dict[Node, DerivedRows] = defaultdict(DerivedRows)
        self.held: dict[Node, HeldRows] = {node: HeldRows(node, window_of(node)) for node in topology.of_type(Suppress)}
        self.algebra = algebra_of(topology)
        self.joined = {node: rows for node, rows in self.algebra.items() if isinstance(rows, JoinRows)}
        self.joins = joins_of(topology)
        self.own: dict[Node, Own | RootSteps | SagaSteps | SagaHandlers] = {**own_steps(topology)}
        self.own |= {node: saga_steps(node) for node in topology.of_type(Saga)}
        self.own |= {node: root_steps(node) for node in topology.of_type(AggregateRoot)}
        self.topics: dict[str, Output] = {}
        self.dead_letters: list[DeadLetter] = []
        for sink in topology.of_type(Sink):
            output = self.topics.setdefault(sink.topic, Output(from_table(sink)))
            if output.changelog != from_table(sink):
                raise NotImplementedError(f"{sink.topic} gets both records and changes")

    def read(self, position: Position, read: Input) -> None:
        """Decode a record, date it, and send it through the steps. A failure does not advance stream time."""
        source = self.sources[position.topic]
        if isinstance(source, StreamSource) and source.events is not None:
            self.read_events(source, source.events, position, read)
            return
        try:
            key = decode(read.key, source.key)
            value = decode(read.value, source.value, self.fields.get(source.topic))
            at_ms = event_time(source.timestamps, key, value, read)
        except (Undecodable, Unreadable) as error:
            reason = "decode" if isinstance(error, Undecodable) else "timestamp"
            self.set_aside(position, read, source, reason, error)
            return
        partition = position.topic, position.partition
        stream_time_ms = next_stream_time(source.timestamps, self.stream_times.get(partition), at_ms)
        self.stream_times[partition] = stream_time_ms
        item = Item(key, value, at_ms, stream_time_ms, position, read)
        if isinstance(source, TableSource):
            for records in (other for other in self.downstreams(source) if isinstance(other, TableRecords)):
                self.pass_on(records, item)
            self.arrive(source, item)
        else:
            self.pass_on(source, item)

    def read_events(self, source: StreamSource, types: EventTypes, position: Position, read: Input) -> None:
        """Tell the events of a record one after the other, all of them or none."""
        try:
            key = decode(read.key, source.key)
            reported = events_in(read, types)
            own = read if reported.at_ms is None else replace(read, timestamp_ms=reported.at_ms)
            times = [event_time(source.timestamps, key, value, own) for value in reported.parts]
        except (Undecodable, Unreadable) as error:
            reason = "decode" if isinstance(error, Undecodable) else "timestamp"
            self.set_aside(position, read, source, reason, error)
            return
        partition = position.topic, position.partition
        for index, (value, at_ms) in enumerate(zip(reported.parts, times, strict=True)):
            stream_time_ms = next_stream_time(source.timestamps, self.stream_times.get(partition), at_ms)
            self.stream_times[partition] = stream_time_ms
            self.pass_on(source, Item(key, value, at_ms, stream_time_ms, position, read, (index,), as_read=False))

    def pass_on(self, node: Node, item: Item) -> None:
        for downstream in self.downstreams(node):
            if downstream not in self.joins and not isinstance(downstream, Channel | StoreTable | Timeouts):
                self.arrive(downstream, item)
        for join in self.joins:
            for index in (i for i, upstream in enumerate(join.upstreams) if upstream is node):
                self.meet(join, index, item)

    def meet(self, node: Node, index: int, item: Item) -> None:
        """A record comes to one side of a join."""
        try:
            self.join(node, self.joins[node].take(index, item))
        except SetAside as error:
            self.set_aside(item.position, item.origin, node, str(error), error)

    def join(self, node: Node, pairs: Iterable[Pair]) -> None:
        for pair in pairs:
            try:
                made = pair.joined(self.joins[node].node)
            except UserError as error:
                self.set_aside(pair.item.position, pair.item.origin, node, "error", error)
            else:
                self.pass_on(node, made)

    def downstreams(self, node: Node) -> list[Node]:
        """The steps after this one; a stream that is merged with itself is there twice."""
        return [other for other in self.topology for upstream in other.upstreams if upstream is node]

    def arrive(self, node: Node, item: Item) -> None:
        """A record comes to a step; what becomes of it goes on before the next record is looked at."""
        try:
            if isinstance(node, Sink):
                # A value that no step has replaced goes out as the bytes that came in.
                value = seen_value(item.origin.value) if item.as_read else item.value
                place = LOST if item.headless else item.position
                self.topics[node.topic].records.append(Written(item.key, value, place))
            elif isinstance(node, Branch):
                chosen = arm_of(node, item)
                for arm in self.downstreams(node):
                    if getattr(arm, "index", None) == chosen:
                        self.pass_on(arm, item)
            elif node in self.own:
                self.send(node, self.own[node].take(item))
            elif node.is_table:
                self.keep(node, item)
            elif (made := way_to_join(node, item)) is not None:
                self.pass_on(node, made)
            else:
                for made in outcome(node, item):
                    self.pass_on(node, made)
        except UserError as error:
            self.set_aside(item.position, item.origin, node, "error", error)
        except SetAside as error:
            self.set_aside(item.position, item.origin, node, str(error), error)

    def send(self, node: Node, made: Iterable[Sent | Failure]) -> None:
        """What a step of the user's own sends to its outputs."""
        for each in made:
            if isinstance(each, Failure):
                self.set_aside(each.item.position, each.item.origin, node, "error", each.error)
                continue
            channel, item = each
            if channel is None:
                self.pass_on(node, item)
                continue
            for downstream in self.downstreams(node):
                if isinstance(downstream, Timeouts) if channel == TIMEOUTS else _is_channel(downstream, channel):
                    self.pass_on(downstream, item)

    def keep(self, node: Node, item: Item) -> None:
        """A record comes to a table."""
        if node not in self.aggregates:
            self.changed(node, self.latest[node].take(item))
            return
        late: SetAside | None = None
        try:
            for change in self.aggregates[node].take(item):
                if isinstance(change, SetAside):
                    late = change
                elif isinstance(change, Failed):
                    self.set_aside(change.item.position, change.item.origin, node, "error", change.error)
                else:
                    self.changed(node, change)
        except UserError as error:
            self.set_aside(item.position, item.origin, node, "error", error)
        if late is not None:
            raise late

    def changed(self, node: Node, change: Change | None) -> None:
        """A row of a table has changed: tell the tables and streams that are made of it."""
        if change is None or (change.before is None and change.after is None):
            return
        for downstream in self.downstreams(node):
            if isinstance(downstream, ToStream):
                # That a window is dropped because it is over is not a change of its result.
                if not change.dropped:
                    both = {"before": change.before, "after": change.after}
                    rendered = both if downstream.changes else change.after
                    self.pass_on(downstream, change.item.with_key(change.key).with_value(rendered))
                continue
            if isinstance(downstream, TableRecords):
                continue
            if isinstance(downstream, TableLookup):
                join = self.joins[downstream]
                assert isinstance(join, RowsAtHand)
                join.change(change)
                continue
            if isinstance(downstream, Suppress):
                for let_through in self.held[downstream].take(change):
                    self.changed(downstream, let_through)
                continue
            if downstream in self.algebra:
                for table, made in self.algebra[downstream].take(node, change):
                    self.changed(table, made)
                continue
            before, after = (self.side(downstream, change.key, value) for value in (change.before, change.after))
            derived = replace(change, before=before, after=after)
            self.derived[downstream].take(derived)
            self.changed(downstream, derived)

    def side(self, node: Node, key: object, value: object) -> object:
        """What a table step makes of one side of a change."""
        if value is None:
            return None
        try:
            if isinstance(node, TableFilter):
                return value if bool(call(node.predicate, key, value)) is not node.negate else None
            if isinstance(node, TableMapValues):
                return call(node.function, key, value)
        except UserError as error:
            # How many changes a table goes through depends on the batches, and so would the number of dead letters.
            raise NotImplementedError(f"{node.name} raised; what is promised says nothing of that") from error
        raise NotImplementedError(f"the oracle does not know {node.kind}")

    def close(self) -> None:
        """The end of the input: partitions without a readable record do not hold back the watermark."""
        for node in self.topology:
            rows = self.aggregates.get(node) or self.held.get(node) or self.mortal.get(node) or self.joined.get(node)
            topics = self.topology.upstream_topics(node)
            stream_times = [
                stream_time_ms for (topic, _), stream_time_ms in self.stream_times.items() if topic in topics
            ]
            stream_times = [stream_time_ms - self.topology.held_back_ms(node) for stream_time_ms in stream_times]
            if node in self.own and stream_times:
                self.send(node, self.own[node].close(min(stream_times)))
            for change in rows.close(min(stream_times)) if rows is not None and stream_times else []:
                if isinstance(change, Failed):
                    self.set_aside(change.item.position, change.item.origin, node, "error", change.error)
                else:
                    self.changed(node, change)
            if node in self.joins and stream_times:
                self.join(node, self.joins[node].close(min(stream_times)))

    def set_aside(self, position: Position, read: Input, node: Node, reason: str, error: Exception) -> None:
        self.dead_letters.append(DeadLetter(position, node.name, reason, read.key, read.value, str(error)))

    def expected(self) -> Expected:
        tables = {node.name: rows.rows() for node, rows in self.aggregates.items()}
        tables |= {node.name: rows.rows() for node, rows in self.latest.items()}
        tables |= {node.name: self.derived[node].rows() for node in self.topology if getattr(node, "kept", False)}
        tables |= stored_rows(self.topology, self.own) | root_rows(self.own)
        return Expected(tables | rows_of(self.algebra), self.topics, self.dead_letters)

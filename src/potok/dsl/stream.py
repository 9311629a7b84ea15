"""A stream of records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypedDict, Unpack, overload

from potok.dsl.camel_case import AGGREGATES
from potok.dsl.graph_builder import calling_location
from potok.dsl.grouping.grouped_stream import GroupedStream
from potok.dsl.handle import K2, Declared, K, Selector, V, selector
from potok.dsl.inputs.events import event_writing
from potok.dsl.inputs.serdes import schema_of, sink_format
from potok.dsl.joins.stream_joins import Joining
from potok.dsl.processing import Processing
from potok.dsl.sinks.delivering import by_task_of, guarantee_of
from potok.dsl.sinks.external_sinks import ExternalSinks
from potok.dsl.sinks.lake_sinks import LakeSinks
from potok.dsl.sinks.message_sinks import MessageSinks
from potok.dsl.sinks.server_sinks import MaintainedSinks
from potok.dsl.sinks.spark_sinks import SparkSinks
from potok.dsl.stateless import Stateless
from potok.dsl.table import Table
from potok.dsl.time_to_live import TtlClock, lifetime_of, topic_retention
from potok.duration import Duration
from potok.errors import TopologyError
from potok.events.write import EnvelopeName
from potok.expressions.function import Function
from potok.records.formats.registered.declare import RegisteredType
from potok.sinks.guarantee import Atomicity, Guarantee, GuaranteeName
from potok.topology.nodes import Arm, Branch, Merge, Node, Repartition, SelectKey, Sink, ToTable

CleanupPolicy = Literal["delete", "compact", "compact,delete"]


class SinkOptions(TypedDict, total=False):
    """The options of `Stream.to`."""

    key: RegisteredType | None
    value: RegisteredType | None
    key_format: str | None
    value_format: str | None
    partitions: int | None
    retention: Duration | None
    cleanup_policy: CleanupPolicy
    guarantee: GuaranteeName
    atomic: Atomicity
    envelope: EnvelopeName | None
    event: type | Sequence[type] | None


class NotIterated(TopologyError):
    """A stream of the DSL in a loop, as if it were the stream of an agent."""

    def __init__(self) -> None:
        super().__init__(
            "a stream of the DSL has steps; it cannot be iterated",
            hint="async for belongs in an agent: @app.agent(topic); in a program of its own, use potok.Consumer",
            at=calling_location(),
        )


class Stream(
    Stateless[K, V],
    Processing[K, V],
    Joining[K, V],
    ExternalSinks,
    MaintainedSinks,
    LakeSinks,
    SparkSinks,
    MessageSinks,
):
    """A sequence of independent records with keys of type K and values of type V."""

    _elsewhere = dict.fromkeys(AGGREGATES, "group first: .group_by_key() or .group_by(...)")

    def _add(self, node: Node) -> Stream[Any, Any]:
        self._graph.add(node)
        return Stream(self._graph, node)

    if not TYPE_CHECKING:

        def __aiter__(self) -> NoReturn:
            raise NotIterated

    @overload
    def branch(self, *predicates: Callable[[V], object], name: str | None = None) -> list[Stream[K, V]]: ...
    @overload
    def branch(self, *predicates: Callable[[K, V], object], name: str | None = None) -> list[Stream[K, V]]: ...
    def branch(self, *predicates: Callable[..., object], name: str | None = None) -> list[Stream[K, V]]:
        """Return one stream per predicate. A record goes to the first that is true, and is dropped if none is.

        >>> type_a, type_b = events.branch(lambda k, v: v["type"] == "A", lambda k, v: v["type"] == "B")
        """
        return self._arms({f"branch-{n}": p for n, p in enumerate(predicates, 1)}, name)[:-1]

    @overload
    def split(self, *, name: str | None = None, **predicates: Callable[[V], object]) -> dict[str, Stream[K, V]]: ...
    @overload
    def split(self, *, name: str | None = None, **predicates: Callable[[K, V], object]) -> dict[str, Stream[K, V]]: ...
    def split(self, *, name: str | None = None, **predicates: Callable[..., object]) -> dict[str, Stream[K, V]]:
        """Return named branches; records that satisfy no predicate are under `"default"`.

        >>> arms = orders.split(large=lambda v: v["amount"] > 100, small=lambda v: v["amount"] < 10)
        >>> arms["large"].to("large-orders")
        """
        if "default" in predicates:
            text = '"default" is the branch of records that no predicate accepts'
            raise TopologyError(text, hint="give the branch another name", at=calling_location())
        arms = self._arms(predicates, name)
        return dict(zip([*predicates, "default"], arms, strict=True))

    def _arms(self, predicates: Mapping[str, Callable[..., object]], name: str | None) -> list[Stream[K, V]]:
        at = calling_location()
        if not predicates:
            raise TopologyError("a branch needs at least one predicate", hint="pass lambda k, v: ...", at=at)
        functions = tuple(Function.of(predicate, (1, 2)) for predicate in predicates.values())
        branch = Branch(self._name(name, "branch"), at, self._node, functions)
        self._graph.add(branch)
        names = [*predicates, "default"]
        return [self._add(Arm(f"{branch.name}.{arm}", at, branch, index)) for index, arm in enumerate(names)]

    def merge(self, *others: Stream[K, V], name: str | None = None) -> Stream[K, V]:
        """Combine the records of this stream and of others into one stream."""
        at = calling_location()
        for other in others:
            if other._graph is not self._graph:
                raise TopologyError("cannot merge streams of two builders", hint="use one StreamsBuilder", at=at)
        nodes = (self._node, *(other._node for other in others))
        return self._add(Merge(self._name(name, "merge"), at, nodes))

    def __and__(self, other: Stream[K, V]) -> Stream[K, V]:
        """Merge two streams: `orders & payments` is `orders.merge(payments)`."""
        return self.merge(other)

    def repartition(self, *, name: str | None = None) -> Stream[K, V]:
        """Send each record to the shard of its key, so that expensive steps that follow are distributed by key."""
        return self._add(Repartition(self._name(name, "repartition"), calling_location(), self._node))

    def to(
        self,
        topic: str,
        *,
        key: RegisteredType | None = None,
        value: RegisteredType | None = None,
        key_format: str | None = None,
        value_format: str | None = None,
        partitions: int | None = None,
        retention: Duration | None = None,
        cleanup_policy: CleanupPolicy = "delete",
        guarantee: GuaranteeName = Guarantee.EXACTLY_ONCE,
        atomic: Atomicity = "task",
        envelope: EnvelopeName | None = None,
        event: type | Sequence[type] | None = None,
    ) -> None:
        """Write to a topic.

        Args:
            topic: Created if it does not exist.
            key: Write keys with a schema registry: `avro("orders-key")`, `protobuf(...)` or `json_schema(...)`.
            value: Write values with a schema registry, likewise.
            key_format: The format of the keys; by default it follows from their type. `windowed` and `session` write
                the keys of windowed tables as Kafka Streams does.
            value_format: The format of the values: `json` by default, or `delimited`, `text`, `int64`, `float64`,
                `raw`.
            partitions: The number of partitions of a topic that is created.
            retention: How long a topic that is created keeps its records; forever by default.
            cleanup_policy: `compact` keeps the last record of each key of a topic that is created, which suits the
                changes of a table; a record without a key then becomes a dead letter. `compact,delete` applies
                `retention` as well.
            guarantee: `exactly_once`; or `at_least_once` or `at_most_once`, which write outside the commit of a
                batch: just before it, or just after it.
            atomic: What becomes visible together on a cluster with Kafka: `task`, the output of each task, which the
                tasks write in parallel; or `batch`, all of it, which then passes through the driver.
            envelope: Write events: `cloudevents` (structured), `cloudevents_binary`, or the plain `dictionary`.
            event: The class of the events, if the values are not those of `builder.events`; of several classes, the
                field `event_type` selects one.
        """
        at = calling_location()
        promised = guarantee_of(guarantee, at)
        formats = sink_format(key, key_format, topic, "key", at), sink_format(value, value_format, topic, "value", at)
        step = self._graph.step_name(None, f"{self._node.name}.to.{topic}")
        kept = topic_retention(topic, retention, cleanup_policy, at)
        events = event_writing(self._graph, self._node, topic, envelope, event, value_format, at)
        self._graph.add(
            Sink(
                step,
                at,
                self._node,
                topic,
                *formats,
                partitions,
                guarantee=promised,
                events=events,
                by_task=by_task_of(atomic, at),
                **kept,
            )
        )

    def through(self, topic: str, **options: Unpack[SinkOptions]) -> Stream[K, V]:
        """Write to a topic, with the options of `to`, and continue with the same records."""
        self.to(topic, **options)
        return self

    def to_table(
        self,
        *,
        ttl: Duration | None = None,
        ttl_clock: TtlClock = "event",
        history: Duration | None = None,
        name: str | None = None,
    ) -> Table[K, V]:
        """Keep the latest value of each key; a null value deletes the row.

        Args:
            ttl: As in `StreamsBuilder.table`.
            ttl_clock: As in `StreamsBuilder.table`.
            history: As in `StreamsBuilder.table`.
            name: The name of the table.
        """
        at = calling_location()
        lifetime = lifetime_of(ttl, ttl_clock, history, at)
        node = ToTable(self._state_name(name, "to_table"), at, self._node, lifetime)
        self._graph.add(node)
        return Table(self._graph, node)

    def group_by_key(self) -> GroupedStream[K, V]:
        """Group by the key of the records."""
        return GroupedStream(self._graph, self._node)

    @overload
    def group_by(self, function: str, *, key: type[K2], name: str | None = None) -> GroupedStream[K2, V]: ...
    @overload
    def group_by(
        self, function: str, *, key: Declared | None = None, name: str | None = None
    ) -> GroupedStream[Any, V]: ...
    @overload
    def group_by(
        self, function: Callable[[V], K2], *, key: type[K2] | None = None, name: str | None = None
    ) -> GroupedStream[K2, V]: ...
    @overload
    def group_by(
        self, function: Callable[[K, V], K2], *, key: type[K2] | None = None, name: str | None = None
    ) -> GroupedStream[K2, V]: ...
    @overload
    def group_by(
        self, function: Callable[..., Any], *, key: Declared, name: str | None = None
    ) -> GroupedStream[Any, V]: ...
    def group_by(self, function: Selector, *, key: object = None, name: str | None = None) -> GroupedStream[Any, V]:
        """Group by a field, or by a function of key and value.

        >>> by_user = orders.group_by("user_id")
        >>> by_user = orders.group_by(lambda k, v: v["user_id"])
        """
        at = calling_location()
        node = SelectKey(self._name(name, "group_by"), at, self._node, selector(function), schema_of(key, at))
        self._graph.add(node)
        return GroupedStream(self._graph, node)

    if TYPE_CHECKING:
        addSink = to
        groupBy = group_by
        groupByKey = group_by_key
        toTable = to_table

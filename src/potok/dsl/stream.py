"""A stream of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from potok.dsl.camel_case import AGGREGATES
from potok.dsl.external_sinks import ExternalSinks, guarantee_of
from potok.dsl.graph_builder import calling_location
from potok.dsl.grouped_stream import GroupedStream
from potok.dsl.handle import Selector, selector
from potok.dsl.joining import Joining
from potok.dsl.processing import Processing
from potok.dsl.serdes import check_format, schema_of
from potok.dsl.table import Table
from potok.dsl.time_to_live import lifetime_of, topic_kept
from potok.duration import Duration
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.sinks.guarantee import Guarantee
from potok.topology.nodes import (
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
    ToTable,
)


class NotIterated(TopologyError):
    """A stream of the DSL in a loop, as if it were that of an agent."""

    def __init__(self) -> None:
        super().__init__(
            "a stream of the DSL has steps, and no loop takes its records",
            hint="async for belongs in an agent: @app.agent(topic); in a program of its own, use potok.Consumer",
            at=calling_location(),
        )


class Stream(Processing, Joining, ExternalSinks):
    """Records, one after the other, each independent of the others."""

    _elsewhere = dict.fromkeys(AGGREGATES, "group first: .group_by_key() or .group_by(...)")

    def _add(self, node: Node) -> Stream:
        self._graph.add(node)
        return Stream(self._graph, node)

    def __aiter__(self) -> NoReturn:
        raise NotIterated

    def filter(self, predicate: Callable[..., Any], *, name: str = "") -> Stream:
        """Keep the records whose value satisfies `predicate`.

        >>> large = orders.filter(lambda k, v: v["amount"] > 100)

        Args:
            predicate: Called with key and value, or with the value alone. Must not have side effects: Spark may call it
                again after a failure.
            name: Names the step in metrics and `describe()`.
        """
        function = Function.of(predicate, (1, 2))
        return self._add(Filter(self._name(name, "filter"), calling_location(), self._node, function))

    def filter_not(self, predicate: Callable[..., Any], *, name: str = "") -> Stream:
        """Drop the records whose value satisfies `predicate`."""
        function = Function.of(predicate, (1, 2))
        return self._add(Filter(self._name(name, "filter_not"), calling_location(), self._node, function, negate=True))

    def map(self, function: Callable[..., Any], *, key: object = None, value: object = None, name: str = "") -> Stream:
        """Replace key and value: the function returns a pair.

        >>> with_tax = orders.map(lambda k, v: (k, v["amount"] * 1.1))

        Args:
            function: Called with key and value, or with the value alone; returns `(key, value)`.
            key: The type of the keys it returns, if it cannot be found by tracing.
            value: The type of the values it returns, if it cannot be found by tracing.
            name: Names the step.
        """
        at = calling_location()
        schemas = schema_of(key, at), schema_of(value, at)
        return self._add(Map(self._name(name, "map"), at, self._node, Function.of(function, (1, 2)), *schemas))

    def map_values(self, function: Callable[..., Any], *, value: object = None, name: str = "") -> Stream:
        """Replace the value; the key stays.

        >>> marked = large.map_values(lambda v: {**v, "status": "HIGH_VALUE"})
        """
        at = calling_location()
        step = self._name(name, "map_values")
        return self._add(MapValues(step, at, self._node, Function.of(function, (1, 2)), schema_of(value, at)))

    def flat_map(
        self, function: Callable[..., Any], *, key: object = None, value: object = None, name: str = ""
    ) -> Stream:
        """Replace a record by any number of `(key, value)` pairs.

        >>> items = orders.flat_map(lambda k, v: [(k, item) for item in v["items"]])
        """
        at = calling_location()
        schemas = schema_of(key, at), schema_of(value, at)
        return self._add(FlatMap(self._name(name, "flat_map"), at, self._node, Function.of(function, (1, 2)), *schemas))

    def flat_map_values(self, function: Callable[..., Any], *, value: object = None, name: str = "") -> Stream:
        """Replace a value by any number of values under the same key."""
        at = calling_location()
        step = self._name(name, "flat_map_values")
        return self._add(FlatMapValues(step, at, self._node, Function.of(function, (1, 2)), schema_of(value, at)))

    def select_key(self, function: Selector, *, key: object = None, name: str = "") -> Stream:
        """Give each record another key: a field by name, or a function of key and value."""
        at = calling_location()
        step = self._name(name, "select_key")
        return self._add(SelectKey(step, at, self._node, selector(function), schema_of(key, at)))

    def branch(self, *predicates: Callable[..., Any], name: str = "") -> list[Stream]:
        """One stream for each predicate; a record goes to the first that is true, and nowhere if none is.

        >>> type_a, type_b = events.branch(lambda k, v: v["type"] == "A", lambda k, v: v["type"] == "B")
        """
        return self._arms({f"branch-{n}": p for n, p in enumerate(predicates, 1)}, name)[:-1]

    def split(self, *, name: str = "", **predicates: Callable[..., Any]) -> dict[str, Stream]:
        """Named branches; what no predicate takes is under `"default"`.

        >>> arms = orders.split(large=lambda v: v["amount"] > 100, small=lambda v: v["amount"] < 10)
        >>> arms["large"].to("large-orders")
        """
        if "default" in predicates:
            text = '"default" is the branch of what no predicate takes'
            raise TopologyError(text, hint="give the branch another name", at=calling_location())
        arms = self._arms(predicates, name)
        return dict(zip([*predicates, "default"], arms, strict=True))

    def _arms(self, predicates: dict[str, Callable[..., Any]], name: str) -> list[Stream]:
        at = calling_location()
        if not predicates:
            raise TopologyError("a branch needs at least one predicate", hint="pass lambda k, v: ...", at=at)
        functions = tuple(Function.of(predicate, (1, 2)) for predicate in predicates.values())
        branch = Branch(self._name(name, "branch"), at, self._node, functions)
        self._graph.add(branch)
        names = [*predicates, "default"]
        return [self._add(Arm(f"{branch.name}.{arm}", at, branch, index)) for index, arm in enumerate(names)]

    def merge(self, *others: Stream, name: str = "") -> Stream:
        """The records of this stream and of the others as one stream."""
        at = calling_location()
        for other in others:
            if other._graph is not self._graph:
                raise TopologyError("cannot merge streams of two builders", hint="use one StreamsBuilder", at=at)
        nodes = (self._node, *(other._node for other in others))
        return self._add(Merge(self._name(name, "merge"), at, nodes))

    def __and__(self, other: Stream) -> Stream:
        """`orders & payments` is `orders.merge(payments)`."""
        return self.merge(other)

    def peek(self, action: Callable[..., Any], *, name: str = "") -> Stream:
        """Call `action` for each record and pass the record on. After a crash it may be called again."""
        return self._add(Peek(self._name(name, "peek"), calling_location(), self._node, Function.of(action, (1, 2))))

    def foreach(self, action: Callable[..., Any], *, name: str = "") -> None:
        """Call `action` for each record. After a crash it may be called again."""
        step = self._name(name, "foreach")
        self._graph.add(Foreach(step, calling_location(), self._node, Function.of(action, (1, 2))))

    def repartition(self, *, name: str = "") -> Stream:
        """Bring each record to the shard of its key, so that heavy steps after it are spread by key."""
        return self._add(Repartition(self._name(name, "repartition"), calling_location(), self._node))

    def to(
        self,
        topic: str,
        *,
        key_format: str = "",
        value_format: str = "",
        partitions: int | None = None,
        retention: Duration | None = None,
        cleanup_policy: str = "delete",
        guarantee: str = Guarantee.EXACTLY_ONCE,
    ) -> None:
        """Write to a topic.

        Args:
            topic: Created if it does not exist.
            key_format: How keys are written; follows from their type if left out. `windowed` and `session` write the
                keys of windowed tables as Kafka Streams does.
            value_format: How values are written: `json` unless you say `delimited`, `text`, `int64`, `float64`, `raw`.
            partitions: How many partitions the topic gets when it is created.
            retention: How long it keeps its records, if it is created; for ever if left out.
            cleanup_policy: `compact` keeps the last record of each key, if it is created: what the changes of a table
                want. A record without a key is a dead letter then. `compact,delete` keeps to `retention` as well.
            guarantee: `exactly_once`; or `at_least_once` or `at_most_once`, which are written beside the commit of a
                batch: just before it, or just after it.
        """
        at = calling_location()
        promised = guarantee_of(guarantee, at)
        check_format(key_format, at)
        check_format(value_format, at)
        step = self._graph.step_name("", f"{self._node.name}.to.{topic}")
        kept = topic_kept(topic, retention, cleanup_policy, at)
        formats = key_format, value_format
        self._graph.add(Sink(step, at, self._node, topic, *formats, partitions, guarantee=promised, **kept))

    def through(self, topic: str, **options: Any) -> Stream:
        """Write to a topic, with the options of `to`, and go on with the same records."""
        self.to(topic, **options)
        return self

    def to_table(
        self,
        *,
        ttl: Duration | None = None,
        ttl_clock: str = "event",
        history: Duration | None = None,
        name: str = "",
    ) -> Table:
        """Keep the latest value of each key; a null value deletes. For how long, is told as in `builder.table`."""
        at = calling_location()
        lifetime = lifetime_of(ttl, ttl_clock, history, at)
        node = ToTable(self._state_name(name, "to_table"), at, self._node, lifetime)
        self._graph.add(node)
        return Table(self._graph, node)

    def group_by_key(self) -> GroupedStream:
        """Group by the key that the records have."""
        return GroupedStream(self._graph, self._node)

    def group_by(self, function: Selector, *, key: object = None, name: str = "") -> GroupedStream:
        """Group by a field, or by a function of key and value.

        >>> by_user = orders.group_by("user_id")
        >>> by_user = orders.group_by(lambda k, v: v["user_id"])
        """
        at = calling_location()
        node = SelectKey(self._name(name, "group_by"), at, self._node, selector(function), schema_of(key, at))
        self._graph.add(node)
        return GroupedStream(self._graph, node)

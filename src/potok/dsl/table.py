"""A table: one value per key, kept current."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from potok.dsl.camel_case import AGGREGATES
from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import Declared, K, R, V
from potok.dsl.inputs.serdes import schema_of
from potok.dsl.joins.table_joins import TableJoining
from potok.dsl.sinks.lake_sinks import LakeSinks
from potok.dsl.sinks.server_sinks import MaintainedSinks
from potok.dsl.sinks.spark_sinks import SparkSinks
from potok.duration import Duration, to_ms
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.topology.nodes import Node, Suppress, TableFilter, TableMapValues, ToStream

if TYPE_CHECKING:
    from potok.dsl.stream import Stream


def until_window_closes() -> None:
    """Ask `Table.suppress` to emit final results only, as in Kafka Streams: `table.suppress(until_window_closes)`."""


class Table(TableJoining[K, V], MaintainedSinks, LakeSinks, SparkSinks):
    """One value of type V per key of type K, or per key and window. It can be read by its name."""

    _mode = "upsert"
    _elsewhere = {
        **dict.fromkeys(AGGREGATES, "group its rows first: .group_by(...)"),
        **dict.fromkeys(
            (
                *("to", "through", "to_files", "to_postgres", "to_http", "to_webhook"),
                *("to_rabbitmq", "to_mqtt", "to_zeromq", "to_statsd"),
            ),
            "make a stream of its changes first: .to_stream()",
        ),
    }

    @property
    def name(self) -> str:
        return self._node.name

    def _records_for(self, step: str) -> Node:
        """A sink gets the changes of the table."""
        changes = ToStream(f"{step}.changes", calling_location(), self._node, False)
        self._graph.add(changes)
        return changes

    def _add(self, node: Node) -> Table[Any, Any]:
        self._graph.add(node)
        return Table(self._graph, node)

    @overload
    def filter(self, predicate: Callable[[V], object], *, name: str | None = None) -> Table[K, V]: ...
    @overload
    def filter(self, predicate: Callable[[K, V], object], *, name: str | None = None) -> Table[K, V]: ...
    def filter(self, predicate: Callable[..., object], *, name: str | None = None) -> Table[K, V]:
        """Keep the rows that satisfy `predicate`. A row that stops satisfying it is deleted downstream.

        Args:
            predicate: Called with key and value, or with the value alone.
            name: Materialises the result as a table that can be read by this name.
        """
        step = self._name(name, "filter")
        function = Function.of(predicate, (1, 2))
        return self._add(TableFilter(step, calling_location(), self._node, function, kept=bool(name)))

    @overload
    def filter_not(self, predicate: Callable[[V], object], *, name: str | None = None) -> Table[K, V]: ...
    @overload
    def filter_not(self, predicate: Callable[[K, V], object], *, name: str | None = None) -> Table[K, V]: ...
    def filter_not(self, predicate: Callable[..., object], *, name: str | None = None) -> Table[K, V]:
        """Keep the rows that do not satisfy `predicate`."""
        step = self._name(name, "filter_not")
        function = Function.of(predicate, (1, 2))
        return self._add(TableFilter(step, calling_location(), self._node, function, negate=True, kept=bool(name)))

    @overload
    def map_values(self, function: Callable[[V], R], *, value: None = None, name: str | None = None) -> Table[K, R]: ...
    @overload
    def map_values(
        self, function: Callable[[K, V], R], *, value: None = None, name: str | None = None
    ) -> Table[K, R]: ...
    @overload
    def map_values(
        self, function: Callable[[V], object], *, value: type[R], name: str | None = None
    ) -> Table[K, R]: ...
    @overload
    def map_values(
        self, function: Callable[[K, V], object], *, value: type[R], name: str | None = None
    ) -> Table[K, R]: ...
    @overload
    def map_values(
        self, function: Callable[..., object], *, value: Declared, name: str | None = None
    ) -> Table[K, Any]: ...
    def map_values(
        self, function: Callable[..., Any], *, value: object = None, name: str | None = None
    ) -> Table[K, Any]:
        """Replace the value of each row.

        Args:
            function: Called with the value, or with key and value; returns the new value.
            value: The type of the returned values, if tracing cannot infer it.
            name: Materialises the result as a table that can be read by this name.
        """
        at = calling_location()
        step = self._name(name, "map_values")
        schema = schema_of(value, at)
        node = TableMapValues(step, at, self._node, Function.of(function, (1, 2)), schema, kept=bool(name))
        return self._add(node)

    def emit_final(self, *, name: str | None = None) -> Table[K, V]:
        """Emit the result of each window once, when the window closes, and no change before.

        The table itself stays readable by its name, with every change.
        """
        return self._suppressed(name, "emit_final", None)

    def emit_every(self, time: Duration, *, name: str | None = None) -> Table[K, V]:
        """Emit at most one change of each row, the last one, per `time` of event time."""
        return self._suppressed(name, "emit_every", to_ms(time))

    def suppress(self, until: Duration | Callable[[], None], *, name: str | None = None) -> Table[K, V]:
        """Limit the changes that are emitted.

        `suppress(until_window_closes)` is `emit_final()`; `suppress("10 seconds")` is `emit_every("10 seconds")`.
        """
        if until is until_window_closes:
            return self.emit_final(name=name)
        if isinstance(until, Duration):
            return self.emit_every(until, name=name)
        hint = 'write suppress(until_window_closes), or suppress("10 seconds")'
        raise TopologyError(f"suppress got {until!r}", hint=hint, at=calling_location())

    def _suppressed(self, name: str | None, verb: str, every_ms: int | None) -> Table[K, V]:
        node = Suppress(self._state_name(name, verb), calling_location(), self._node, every_ms)
        return self._add(node)

    @overload
    def to_stream(self, *, changes: Literal[False] = False, name: str | None = None) -> Stream[K, V]: ...
    @overload
    def to_stream(self, *, changes: bool, name: str | None = None) -> Stream[K, Any]: ...
    def to_stream(self, *, changes: bool = False, name: str | None = None) -> Stream[K, Any]:
        """Return the changes of the table as a stream: the new value, or null for a deleted row.

        Args:
            changes: Emit `{"before": ..., "after": ...}` instead, with None for no row.
            name: Names the step.
        """
        node = ToStream(self._name(name, "to_stream"), calling_location(), self._node, changes)
        self._graph.add(node)
        return self._graph.classes.stream(self._graph, node)

    if TYPE_CHECKING:
        filterNot = filter_not
        mapValues = map_values
        toStream = to_stream


class GlobalTable(Table[K, V]):
    """A table that streams join by a key computed from the record.

    Its rows are distributed over the shards like those of any other table, not copied to each: the engine sends the
    records to the rows and restores their own key afterwards.
    """

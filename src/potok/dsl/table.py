"""A table: one value per key, kept current."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from potok.dsl.camel_case import AGGREGATES
from potok.dsl.graph_builder import calling_location
from potok.dsl.serdes import schema_of
from potok.dsl.table_joining import TableJoining
from potok.duration import Duration, to_ms
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.topology.nodes import Node, Suppress, TableFilter, TableMapValues, ToStream

if TYPE_CHECKING:
    from potok.dsl.stream import Stream


def until_window_closes() -> None:
    """For those who come from Kafka Streams: `table.suppress(until_window_closes)`."""


class Table(TableJoining):
    """One value per key, or per key and window. While its query runs, and after, it can be read by name."""

    _elsewhere = {
        **dict.fromkeys(AGGREGATES, "group its rows first: .group_by(...)"),
        **dict.fromkeys(("to", "through"), "make a stream of its changes first: .to_stream()"),
    }

    @property
    def name(self) -> str:
        return self._node.name

    def _add(self, node: Node) -> Table:
        self._graph.add(node)
        return Table(self._graph, node)

    def filter(self, predicate: Callable[..., Any], *, name: str = "") -> Table:
        """The rows that satisfy `predicate`. A row that no longer does is deleted downstream.

        Args:
            predicate: Called with key and value, or with the value alone.
            name: Keeps the result as a table that can be read by this name.
        """
        step = self._name(name, "filter")
        function = Function.of(predicate, (1, 2))
        return self._add(TableFilter(step, calling_location(), self._node, function, kept=bool(name)))

    def filter_not(self, predicate: Callable[..., Any], *, name: str = "") -> Table:
        """The rows that do not satisfy `predicate`."""
        step = self._name(name, "filter_not")
        function = Function.of(predicate, (1, 2))
        return self._add(TableFilter(step, calling_location(), self._node, function, negate=True, kept=bool(name)))

    def map_values(self, function: Callable[..., Any], *, value: object = None, name: str = "") -> Table:
        """Replace the value of each row; the name keeps the result as a table that can be read."""
        at = calling_location()
        step = self._name(name, "map_values")
        schema = schema_of(value, at)
        node = TableMapValues(step, at, self._node, Function.of(function, (1, 2)), schema, kept=bool(name))
        return self._add(node)

    def emit_final(self, *, name: str = "") -> Table:
        """Let the result of each window through once, when the window closes, and no change before.

        The table itself stays readable by its name, with every change.
        """
        return self._suppressed(name, "emit_final", None)

    def emit_every(self, time: Duration, *, name: str = "") -> Table:
        """Let at most one change of each row through in so much event time: the last one."""
        return self._suppressed(name, "emit_every", to_ms(time))

    def suppress(self, until: Duration | object, *, name: str = "") -> Table:
        """`suppress(until_window_closes)` is `emit_final()`; `suppress("10 seconds")` is `emit_every("10 seconds")`."""
        if until is until_window_closes:
            return self.emit_final(name=name)
        if isinstance(until, Duration):
            return self.emit_every(until, name=name)
        hint = 'write suppress(until_window_closes), or suppress("10 seconds")'
        raise TopologyError(f"suppress got {until!r}", hint=hint, at=calling_location())

    def _suppressed(self, name: str, verb: str, every_ms: int | None) -> Table:
        node = Suppress(self._state_name(name, verb), calling_location(), self._node, every_ms)
        return self._add(node)

    def to_stream(self, *, changes: bool = False, name: str = "") -> Stream:
        """The changes of the table as a stream: the new value, or null for a row that is gone.

        Args:
            changes: The values are `{"before": ..., "after": ...}` instead, with None for no row.
            name: Names the step.
        """
        from potok.dsl.stream import Stream  # a stream makes tables, and a table makes streams

        node = ToStream(self._name(name, "to_stream"), calling_location(), self._node, changes)
        self._graph.add(node)
        return Stream(self._graph, node)


class GlobalTable(Table):
    """A table to be joined by a key that is computed from the record.

    It lies on the shards of its keys like any other table, not as a copy on each: the engine brings the records to it,
    and gives them their own key back afterwards.
    """

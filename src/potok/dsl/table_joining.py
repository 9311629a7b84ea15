"""Verbs that put tables together, or their rows under other keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import Handle, Selector, selector
from potok.dsl.serdes import schema_of
from potok.errors import TopologyError
from potok.expressions.function import JOINER, Function
from potok.topology.nodes import ForeignJoin, ForeignKey, ForeignMatch, Node, TableGroup, TableJoin
from potok.topology.nodes.joins import JoinKind

if TYPE_CHECKING:
    from potok.dsl.grouped_table import GroupedTable
    from potok.dsl.table import Table


class TableJoining(Handle):
    """What a table can do beside being filtered and mapped."""

    def _add(self, node: Node) -> Table:
        raise NotImplementedError

    def join(
        self,
        other: Table,
        joiner: Callable[..., Any] | None = None,
        *,
        on: Selector | None = None,
        value: object = None,
        name: str = "",
    ) -> Table:
        """The rows that have the same key in both tables, or that refer to a row of the other; kept current by both.

        >>> shipped = orders.join(shipments, lambda order, shipment: {**order, "by": shipment["carrier"]})
        >>> named = orders.join(customers, lambda order, c: {**order, "name": c["name"]}, on="customer_id")

        Args:
            other: The table on the right.
            joiner: Called with both values, or with the key and both; without one, a row is
                `{"left": ..., "right": ...}`. A row whose joiner raises is deleted, and the cause is set aside.
            on: The field, or the function of key and value, that tells the key of the other table that a row refers
                to. Any number of rows may refer to one, and a change of that one changes them all.
            value: The type of the joined rows, if they should be typed.
            name: Keeps the result as a table that can be read by this name.
        """
        return self._joined(other, joiner, JoinKind.INNER, on, value, name, "join")

    def left_join(
        self,
        other: Table,
        joiner: Callable[..., Any] | None = None,
        *,
        on: Selector | None = None,
        value: object = None,
        name: str = "",
    ) -> Table:
        """Like `join`, and the rows of this table that have no partner, with None on the right."""
        return self._joined(other, joiner, JoinKind.LEFT, on, value, name, "left_join")

    def outer_join(
        self, other: Table, joiner: Callable[..., Any] | None = None, *, value: object = None, name: str = ""
    ) -> Table:
        """Like `left_join`, and the rows of the other table that have no partner, with None on the left."""
        return self._joined(other, joiner, JoinKind.OUTER, None, value, name, "outer_join")

    def _joined(
        self,
        other: Table,
        joiner: Callable[..., Any] | None,
        how: JoinKind,
        on: Selector | None,
        value: object,
        name: str,
        verb: str,
    ) -> Table:
        at = calling_location()
        if not isinstance(other, TableJoining):
            hint = "join the stream to the table: stream.join(table), or make a table of it: stream.to_table()"
            raise TopologyError(f"a table is joined to tables, not to {other!r}", hint=hint, at=at)
        if other._graph is not self._graph:
            raise TopologyError("cannot join tables of two builders", hint="use one StreamsBuilder", at=at)
        function = None if joiner is None else Function.of(joiner, (2, 3), JOINER)
        schema = schema_of(value, at)
        step = self._state_name(name, verb)
        if on is None:
            return self._add(TableJoin(step, at, self._node, other._node, how, function, schema, kept=bool(name)))
        foreign = ForeignKey(f"{step}.foreign_key", at, self._node, selector(on), how)
        match = ForeignMatch(f"{step}.match", at, foreign, other._node, how, function, schema)
        self._graph.add(foreign)
        self._graph.add(match)
        return self._add(ForeignJoin(step, at, match, kept=bool(name)))

    def group_by(
        self, function: Selector, *, pairs: bool = False, key: object = None, value: object = None, name: str = ""
    ) -> GroupedTable:
        """Group the rows by a field, or by a function of key and value.

        >>> per_city = users.group_by("city").count(name="users_per_city")
        >>> totals = accounts.group_by(lambda k, v: (v["city"], v["balance"]), pairs=True).sum(name="totals")

        Args:
            function: A field of the value, or a function of key and value that returns the group.
            pairs: The function returns a pair (group, value), as in Kafka Streams.
            key: The type of the group, if it cannot be found by tracing.
            value: The type of the value of a pair, if it cannot be found by tracing.
            name: Names the step.
        """
        from potok.dsl.grouped_table import GroupedTable  # a grouped table makes tables, and a table groups

        at = calling_location()
        schemas = schema_of(key, at), schema_of(value, at)
        node = TableGroup(self._name(name, "group_by"), at, self._node, selector(function), pairs, *schemas)
        self._graph.add(node)
        return GroupedTable(self._graph, node)

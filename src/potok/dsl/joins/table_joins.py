"""Join tables, and group their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import K2, Declared, Handle, K, R, Selector, V, W, selector
from potok.dsl.inputs.serdes import schema_of
from potok.errors import TopologyError
from potok.expressions.function import JOINER, Function
from potok.topology.nodes import ForeignJoin, ForeignKey, ForeignMatch, Node, TableGroup, TableJoin
from potok.topology.nodes.joins import JoinKind

if TYPE_CHECKING:
    from potok.dsl.grouping.grouped_table import GroupedTable
    from potok.dsl.table import Table

On = Selector | None


class TableJoining(Handle, Generic[K, V]):
    """The joins and the grouping of a table."""

    def _add(self, node: Node) -> Table[Any, Any]:
        raise NotImplementedError

    @overload
    def join(
        self,
        other: Table[Any, W],
        joiner: Callable[[V, W], R],
        *,
        on: On = None,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, R]: ...
    @overload
    def join(
        self,
        other: Table[Any, W],
        joiner: Callable[[K, V, W], R],
        *,
        on: On = None,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, R]: ...
    @overload
    def join(
        self,
        other: Table[Any, Any],
        joiner: Callable[..., object] | None = None,
        *,
        on: On = None,
        value: type[R],
        name: str | None = None,
    ) -> Table[K, R]: ...
    @overload
    def join(
        self,
        other: Table[Any, Any],
        joiner: Callable[..., object] | None = None,
        *,
        on: On = None,
        value: Declared,
        name: str | None = None,
    ) -> Table[K, Any]: ...
    @overload
    def join(
        self,
        other: Table[Any, Any],
        joiner: None = None,
        *,
        on: On = None,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, Any]: ...
    def join(
        self,
        other: Table[Any, Any],
        joiner: Callable[..., Any] | None = None,
        *,
        on: Selector | None = None,
        value: object = None,
        name: str | None = None,
    ) -> Table[K, Any]:
        """Join the rows that have the same key in both tables, or rows that refer to a row of the other table.

        Changes of either table update the result.

        >>> shipped = orders.join(shipments, lambda order, shipment: {**order, "by": shipment["carrier"]})
        >>> named = orders.join(customers, lambda order, c: {**order, "name": c["name"]}, on="customer_id")

        Args:
            other: The table on the right.
            joiner: Called with both values, or with the key and both; without one, a row is
                `{"left": ..., "right": ...}`. If the joiner raises, the row is deleted and becomes a dead letter.
            on: The foreign key: the field, or the function of key and value, that returns the key of the other table
                that a row refers to. Any number of rows may refer to one row, and a change of that row updates all of
                them.
            value: The type of the joined rows, if they should be typed.
            name: Materialises the result as a table that can be read by this name.
        """
        return self._joined(other, joiner, JoinKind.INNER, on, value, name, "join")

    @overload
    def left_join(
        self,
        other: Table[Any, W],
        joiner: Callable[[V, W | None], R],
        *,
        on: On = None,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, R]: ...
    @overload
    def left_join(
        self,
        other: Table[Any, W],
        joiner: Callable[[K, V, W | None], R],
        *,
        on: On = None,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, R]: ...
    @overload
    def left_join(
        self,
        other: Table[Any, Any],
        joiner: Callable[..., object] | None = None,
        *,
        on: On = None,
        value: type[R],
        name: str | None = None,
    ) -> Table[K, R]: ...
    @overload
    def left_join(
        self,
        other: Table[Any, Any],
        joiner: Callable[..., object] | None = None,
        *,
        on: On = None,
        value: Declared,
        name: str | None = None,
    ) -> Table[K, Any]: ...
    @overload
    def left_join(
        self,
        other: Table[Any, Any],
        joiner: None = None,
        *,
        on: On = None,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, Any]: ...
    def left_join(
        self,
        other: Table[Any, Any],
        joiner: Callable[..., Any] | None = None,
        *,
        on: Selector | None = None,
        value: object = None,
        name: str | None = None,
    ) -> Table[K, Any]:
        """Join like `join`, and keep the rows of this table without a match, with None on the right."""
        return self._joined(other, joiner, JoinKind.LEFT, on, value, name, "left_join")

    @overload
    def outer_join(
        self,
        other: Table[Any, W],
        joiner: Callable[[V | None, W | None], R],
        *,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, R]: ...
    @overload
    def outer_join(
        self,
        other: Table[Any, W],
        joiner: Callable[[K, V | None, W | None], R],
        *,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, R]: ...
    @overload
    def outer_join(
        self,
        other: Table[Any, Any],
        joiner: Callable[..., object] | None = None,
        *,
        value: type[R],
        name: str | None = None,
    ) -> Table[K, R]: ...
    @overload
    def outer_join(
        self,
        other: Table[Any, Any],
        joiner: Callable[..., object] | None = None,
        *,
        value: Declared,
        name: str | None = None,
    ) -> Table[K, Any]: ...
    @overload
    def outer_join(
        self, other: Table[Any, Any], joiner: None = None, *, value: None = None, name: str | None = None
    ) -> Table[K, Any]: ...
    def outer_join(
        self,
        other: Table[Any, Any],
        joiner: Callable[..., Any] | None = None,
        *,
        value: object = None,
        name: str | None = None,
    ) -> Table[K, Any]:
        """Join like `left_join`, and keep the rows of the other table without a match, with None on the left."""
        return self._joined(other, joiner, JoinKind.OUTER, None, value, name, "outer_join")

    def _joined(
        self,
        other: Table[Any, Any],
        joiner: Callable[..., Any] | None,
        how: JoinKind,
        on: Selector | None,
        value: object,
        name: str | None,
        verb: str,
    ) -> Table[Any, Any]:
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

    @overload
    def group_by(
        self,
        function: str,
        *,
        pairs: Literal[False] = False,
        key: object = None,
        value: object = None,
        name: str | None = None,
    ) -> GroupedTable[Any, V]: ...
    @overload
    def group_by(
        self,
        function: Callable[[V], K2],
        *,
        pairs: Literal[False] = False,
        key: object = None,
        value: object = None,
        name: str | None = None,
    ) -> GroupedTable[K2, V]: ...
    @overload
    def group_by(
        self,
        function: Callable[[K, V], K2],
        *,
        pairs: Literal[False] = False,
        key: object = None,
        value: object = None,
        name: str | None = None,
    ) -> GroupedTable[K2, V]: ...
    @overload
    def group_by(
        self,
        function: Callable[[V], tuple[K2, R]],
        *,
        pairs: Literal[True],
        key: object = None,
        value: object = None,
        name: str | None = None,
    ) -> GroupedTable[K2, R]: ...
    @overload
    def group_by(
        self,
        function: Callable[[K, V], tuple[K2, R]],
        *,
        pairs: Literal[True],
        key: object = None,
        value: object = None,
        name: str | None = None,
    ) -> GroupedTable[K2, R]: ...
    def group_by(
        self,
        function: Selector,
        *,
        pairs: bool = False,
        key: object = None,
        value: object = None,
        name: str | None = None,
    ) -> GroupedTable[Any, Any]:
        """Group the rows by a field, or by a function of key and value.

        >>> per_city = users.group_by("city").count(name="users_per_city")
        >>> totals = accounts.group_by(lambda k, v: (v["city"], v["balance"]), pairs=True).sum(name="totals")

        Args:
            function: A field of the value, or a function of key and value that returns the group.
            pairs: The function returns a pair (group, value), as in Kafka Streams.
            key: The type of the group, if tracing cannot infer it.
            value: The type of the value of a pair, if tracing cannot infer it.
            name: Names the step.
        """
        at = calling_location()
        schemas = schema_of(key, at), schema_of(value, at)
        node = TableGroup(self._name(name, "group_by"), at, self._node, selector(function), pairs, *schemas)
        self._graph.add(node)
        return self._graph.classes.grouped_table(self._graph, node)

    if TYPE_CHECKING:
        groupBy = group_by
        leftJoin = left_join
        outerJoin = outer_join

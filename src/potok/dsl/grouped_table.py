"""The rows of a table by group: the verbs that make a table of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from potok.dsl.graph_builder import GraphBuilder, calling_location
from potok.dsl.handle import Handle, Selector, selector
from potok.dsl.serdes import schema_of
from potok.dsl.table import Table
from potok.expressions.function import Function
from potok.topology.nodes import Aggregation, TableAggregate, TableGroup

_REDUCER = "write lambda total, v: ..."


class GroupedTable(Handle):
    """The rows of a table by group. A row that changes its group leaves the old one, and a group without rows is
    gone."""

    def __init__(self, graph: GraphBuilder, node: TableGroup) -> None:
        super().__init__(graph, node)
        self._group = node

    def _aggregate(self, aggregation: Aggregation, name: str, verb: str, subtractor: Function | None = None) -> Table:
        step = self._state_name(name, verb)
        node = TableAggregate(step, calling_location(), self._group, aggregation, subtractor)
        self._graph.add(node)
        return Table(self._graph, node)

    def _of(self, kind: str, of: Selector | None, name: str) -> Table:
        return self._aggregate(Aggregation(kind, selector(of) if of is not None else None), name, kind)

    def count(self, *, name: str = "") -> Table:
        """How many rows each group has.

        >>> per_city = users.group_by("city").count(name="users_per_city")
        """
        return self._aggregate(Aggregation("count"), name, "count")

    def sum(self, of: Selector | None = None, *, name: str = "") -> Table:
        """The sum of a field, or of a function of the value; nulls are left out. A group of nulls has no row."""
        return self._of("sum", of, name)

    def avg(self, of: Selector | None = None, *, name: str = "") -> Table:
        """The mean; nulls are left out."""
        return self._of("avg", of, name)

    def min(self, of: Selector | None = None, *, name: str = "") -> Table:
        """The least. All values of a group are kept, so that another can take the place of one that leaves."""
        return self._of("min", of, name)

    def max(self, of: Selector | None = None, *, name: str = "") -> Table:
        """The greatest. All values of a group are kept, so that another can take the place of one that leaves."""
        return self._of("max", of, name)

    def count_distinct(self, of: Selector | None = None, *, name: str = "") -> Table:
        """How many different ones there are; nulls are left out."""
        return self._of("count_distinct", of, name)

    def collect_list(self, of: Selector | None = None, *, name: str = "") -> Table:
        """All of them, from the least to the greatest: rows that replace each other have no order of arrival."""
        return self._of("collect_list", of, name)

    def reduce(
        self, adder: Callable[..., Any], subtractor: Callable[..., Any], *, value: object = None, name: str = ""
    ) -> Table:
        """Combine the values of a group two at a time, and take out those that leave.

        >>> totals = balances.group_by("city").reduce(lambda total, v: total + v, lambda total, v: total - v)

        Args:
            adder: Called with the aggregate so far and a value that came; the first value stands as it is.
            subtractor: Called with the aggregate so far and a value that left.
            value: The type of the aggregate, if it should be typed.
            name: The table's name.
        """
        schema = schema_of(value, calling_location())
        aggregation = Aggregation("reduce", Function.of(adder, (2,), _REDUCER), schema=schema)
        return self._aggregate(aggregation, name, "reduce", Function.of(subtractor, (2,), _REDUCER))

    def aggregate(
        self,
        initializer: Any,
        adder: Callable[..., Any],
        subtractor: Callable[..., Any],
        *,
        value: object = None,
        name: str = "",
    ) -> Table:
        """Fold the values of a group from `initializer`: by `adder` those that come, by `subtractor` those that leave.

        >>> totals = accounts.group_by("city").aggregate(
        ...     0, lambda k, v, total: total + v["balance"], lambda k, v, total: total - v["balance"]
        ... )

        Args:
            initializer: The value to begin with, or a function without arguments that makes it.
            adder: Called with the group, the value and the aggregate so far (or with value and aggregate).
            subtractor: Called like the adder, with a value that left.
            value: The type of the aggregate, if it should be typed.
            name: The table's name.
        """
        schema = schema_of(value, calling_location())
        function = Function.of(adder, (2, 3))
        if callable(initializer):
            aggregation = Aggregation("fold", function, initializer(), Function.of(initializer, (0,)), schema)
        else:
            aggregation = Aggregation("fold", function, initializer, None, schema)
        return self._aggregate(aggregation, name, "aggregate", Function.of(subtractor, (2, 3)))

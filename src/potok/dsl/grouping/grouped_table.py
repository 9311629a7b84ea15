"""The rows of a table by group, and their aggregates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypedDict, Unpack, overload

from potok.dsl.graph_builder import GraphBuilder, calling_location
from potok.dsl.handle import A, Declared, Handle, K, R, Selector, V, selector
from potok.dsl.inputs.serdes import fold_of, schema_of
from potok.dsl.table import Table
from potok.expressions.function import Function
from potok.topology.nodes import Aggregation, TableAggregate, TableGroup

_REDUCER = "write lambda total, v: ..."


class GroupOptions(TypedDict, total=False):
    """The options of an aggregate of rows."""

    name: str | None


class GroupedTable(Handle, Generic[K, V]):
    """The rows of a table by group.

    A row that changes its group is removed from the old group; a group without rows is deleted.
    """

    def __init__(self, graph: GraphBuilder, node: TableGroup) -> None:
        super().__init__(graph, node)
        self._group = node

    def _aggregate(
        self, aggregation: Aggregation, name: str | None, verb: str, subtractor: Function | None = None
    ) -> Table[K, Any]:
        step = self._state_name(name, verb)
        node = TableAggregate(step, calling_location(), self._group, aggregation, subtractor)
        self._graph.add(node)
        return Table(self._graph, node)

    def _of(self, kind: str, of: Selector | None, name: str | None) -> Table[K, Any]:
        return self._aggregate(Aggregation(kind, selector(of) if of is not None else None), name, kind)

    def count(self, *, name: str | None = None) -> Table[K, int]:
        """Count the rows of each group.

        >>> per_city = users.group_by("city").count(name="users_per_city")
        """
        return self._aggregate(Aggregation("count"), name, "count")

    @overload
    def sum(self, of: None = None, **options: Unpack[GroupOptions]) -> Table[K, V]: ...
    @overload
    def sum(self, of: str, **options: Unpack[GroupOptions]) -> Table[K, Any]: ...
    @overload
    def sum(self, of: Callable[[V], R], **options: Unpack[GroupOptions]) -> Table[K, R]: ...
    @overload
    def sum(self, of: Callable[[Any, V], R], **options: Unpack[GroupOptions]) -> Table[K, R]: ...
    def sum(self, of: Selector | None = None, *, name: str | None = None) -> Table[K, Any]:
        """Sum a field, or the results of a function of the value. Nulls are ignored; a group of nulls has no row."""
        return self._of("sum", of, name)

    @overload
    def avg(self, of: None = None, **options: Unpack[GroupOptions]) -> Table[K, float]: ...
    @overload
    def avg(self, of: str, **options: Unpack[GroupOptions]) -> Table[K, float]: ...
    @overload
    def avg(self, of: Callable[[V], object], **options: Unpack[GroupOptions]) -> Table[K, float]: ...
    @overload
    def avg(self, of: Callable[[Any, V], object], **options: Unpack[GroupOptions]) -> Table[K, float]: ...
    def avg(self, of: Selector | None = None, *, name: str | None = None) -> Table[K, float]:
        """Return the mean. Nulls are ignored."""
        return self._of("avg", of, name)

    @overload
    def min(self, of: None = None, **options: Unpack[GroupOptions]) -> Table[K, V]: ...
    @overload
    def min(self, of: str, **options: Unpack[GroupOptions]) -> Table[K, Any]: ...
    @overload
    def min(self, of: Callable[[V], R], **options: Unpack[GroupOptions]) -> Table[K, R]: ...
    @overload
    def min(self, of: Callable[[Any, V], R], **options: Unpack[GroupOptions]) -> Table[K, R]: ...
    def min(self, of: Selector | None = None, *, name: str | None = None) -> Table[K, Any]:
        """Return the minimum. All values of a group are stored, so that the next can replace one that leaves."""
        return self._of("min", of, name)

    @overload
    def max(self, of: None = None, **options: Unpack[GroupOptions]) -> Table[K, V]: ...
    @overload
    def max(self, of: str, **options: Unpack[GroupOptions]) -> Table[K, Any]: ...
    @overload
    def max(self, of: Callable[[V], R], **options: Unpack[GroupOptions]) -> Table[K, R]: ...
    @overload
    def max(self, of: Callable[[Any, V], R], **options: Unpack[GroupOptions]) -> Table[K, R]: ...
    def max(self, of: Selector | None = None, *, name: str | None = None) -> Table[K, Any]:
        """Return the maximum. All values of a group are stored, so that the next can replace one that leaves."""
        return self._of("max", of, name)

    @overload
    def count_distinct(self, of: None = None, **options: Unpack[GroupOptions]) -> Table[K, int]: ...
    @overload
    def count_distinct(self, of: str, **options: Unpack[GroupOptions]) -> Table[K, int]: ...
    @overload
    def count_distinct(self, of: Callable[[V], object], **options: Unpack[GroupOptions]) -> Table[K, int]: ...
    @overload
    def count_distinct(self, of: Callable[[Any, V], object], **options: Unpack[GroupOptions]) -> Table[K, int]: ...
    def count_distinct(self, of: Selector | None = None, *, name: str | None = None) -> Table[K, int]:
        """Count the distinct values. Nulls are ignored."""
        return self._of("count_distinct", of, name)

    @overload
    def collect_list(self, of: None = None, **options: Unpack[GroupOptions]) -> Table[K, list[V]]: ...
    @overload
    def collect_list(self, of: str, **options: Unpack[GroupOptions]) -> Table[K, list[Any]]: ...
    @overload
    def collect_list(self, of: Callable[[V], R], **options: Unpack[GroupOptions]) -> Table[K, list[R]]: ...
    @overload
    def collect_list(self, of: Callable[[Any, V], R], **options: Unpack[GroupOptions]) -> Table[K, list[R]]: ...
    def collect_list(self, of: Selector | None = None, *, name: str | None = None) -> Table[K, list[Any]]:
        """Collect all values in ascending order: rows that replace each other have no order of arrival."""
        return self._of("collect_list", of, name)

    @overload
    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V],
        *,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, V]: ...
    @overload
    def reduce(
        self, adder: Callable[..., object], subtractor: Callable[..., object], *, value: object, name: str | None = None
    ) -> Table[K, Any]: ...
    def reduce(
        self,
        adder: Callable[..., Any],
        subtractor: Callable[..., Any],
        *,
        value: object = None,
        name: str | None = None,
    ) -> Table[K, Any]:
        """Combine the values of a group two at a time, and subtract the values that leave it.

        >>> totals = balances.group_by("city").reduce(lambda total, v: total + v, lambda total, v: total - v)

        Args:
            adder: Called with the current aggregate and an added value; the first value is the initial aggregate.
            subtractor: Called with the current aggregate and a removed value.
            value: The type of the aggregate, if it should be typed.
            name: The name of the table.
        """
        schema = schema_of(value, calling_location())
        aggregation = Aggregation("reduce", Function.of(adder, (2,), _REDUCER), schema=schema)
        return self._aggregate(aggregation, name, "reduce", Function.of(subtractor, (2,), _REDUCER))

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[V, A], A],
        subtractor: Callable[[V, A], A],
        *,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        subtractor: Callable[[K, V, A], A],
        *,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, A]: ...
    @overload
    def aggregate(
        self,
        initializer: A,
        adder: Callable[[V, A], A],
        subtractor: Callable[[V, A], A],
        *,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, A]: ...
    @overload
    def aggregate(
        self,
        initializer: A,
        adder: Callable[[K, V, A], A],
        subtractor: Callable[[K, V, A], A],
        *,
        value: None = None,
        name: str | None = None,
    ) -> Table[K, A]: ...
    @overload
    def aggregate(
        self,
        initializer: object,
        adder: Callable[..., object],
        subtractor: Callable[..., object],
        *,
        value: type[A],
        name: str | None = None,
    ) -> Table[K, A]: ...
    @overload
    def aggregate(
        self,
        initializer: object,
        adder: Callable[..., object],
        subtractor: Callable[..., object],
        *,
        value: Declared,
        name: str | None = None,
    ) -> Table[K, Any]: ...
    def aggregate(
        self,
        initializer: Any,
        adder: Callable[..., Any],
        subtractor: Callable[..., Any],
        *,
        value: object = None,
        name: str | None = None,
    ) -> Table[K, Any]:
        """Fold the values of a group, starting with `initializer`: `adder` adds values, `subtractor` removes them.

        >>> totals = accounts.group_by("city").aggregate(
        ...     0, lambda k, v, total: total + v["balance"], lambda k, v, total: total - v["balance"]
        ... )

        Args:
            initializer: The initial value, or a function without arguments that returns it.
            adder: Called with the group, the value and the current aggregate (or with value and aggregate).
            subtractor: Called like the adder, with a removed value.
            value: The type of the aggregate, if it should be typed.
            name: The name of the table.
        """
        aggregation = fold_of(Function.of(adder, (2, 3)), initializer, value, calling_location())
        return self._aggregate(aggregation, name, "aggregate", Function.of(subtractor, (2, 3)))

    if TYPE_CHECKING:
        collectList = collect_list
        countDistinct = count_distinct

"""The aggregates of a grouped stream, the same with and without a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, overload

from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import A, Declared, Emit, Handle, K, R, Selector, V, selector
from potok.dsl.inputs.serdes import fold_of
from potok.dsl.table import Table
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.topology.nodes import Aggregate, Aggregation, Session, Window

T = TypeVar("T")
"""The key of the resulting table: K, or a key with its window."""


class AggregateOptions(TypedDict, total=False):
    """The options of an aggregate."""

    name: str | None
    emit: Emit


class Aggregating(Handle, Generic[K, V, T]):
    """The aggregates of records with keys of type K and values of type V. They result in tables with keys of type T.

    Each takes a `name` for its table, and `emit`: by default a table emits one change per row and batch;
    `emit="each_record"` emits one per record, and disables pre-aggregation.
    """

    _window: Window | None = None
    _final = False

    def _aggregate(self, aggregation: Aggregation, name: str | None, emit: str, verb: str) -> Table[T, Any]:
        at = calling_location()
        if emit not in ("changes", "each_record"):
            raise TopologyError(f'emit="{emit}" is not known', hint='write emit="changes" or emit="each_record"', at=at)
        step = self._state_name(name, verb)
        node = Aggregate(step, at, self._node, aggregation, self._window, emit == "each_record")
        self._graph.add(node)
        table: Table[T, Any] = Table(self._graph, node)
        return table.emit_final() if self._final else table

    def _of(self, kind: str, of: Selector | None, name: str | None, emit: Emit) -> Table[T, Any]:
        return self._aggregate(Aggregation(kind, selector(of) if of is not None else None), name, emit, kind)

    def count(self, *, name: str | None = None, emit: Emit = "changes") -> Table[T, int]:
        """Count the records of each key.

        >>> counts = orders.group_by("user_id").count(name="order_counts")
        """
        return self._aggregate(Aggregation("count"), name, emit, "count")

    def reduce(self, reducer: Callable[[V, V], V], *, name: str | None = None, emit: Emit = "changes") -> Table[T, V]:
        """Combine the values of a key two at a time, starting with its first value.

        >>> totals = amounts.group_by_key().reduce(lambda v1, v2: v1 + v2)
        """
        return self._aggregate(Aggregation("reduce", Function.of(reducer, (2,))), name, emit, "reduce")

    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[V, A], A],
        merger: Callable[..., object] | None = None,
        *,
        value: None = None,
        **options: Unpack[AggregateOptions],
    ) -> Table[T, A]: ...
    @overload
    def aggregate(
        self,
        initializer: Callable[[], A],
        aggregator: Callable[[K, V, A], A],
        merger: Callable[..., object] | None = None,
        *,
        value: None = None,
        **options: Unpack[AggregateOptions],
    ) -> Table[T, A]: ...
    @overload
    def aggregate(
        self,
        initializer: A,
        aggregator: Callable[[V, A], A],
        merger: Callable[..., object] | None = None,
        *,
        value: None = None,
        **options: Unpack[AggregateOptions],
    ) -> Table[T, A]: ...
    @overload
    def aggregate(
        self,
        initializer: A,
        aggregator: Callable[[K, V, A], A],
        merger: Callable[..., object] | None = None,
        *,
        value: None = None,
        **options: Unpack[AggregateOptions],
    ) -> Table[T, A]: ...
    @overload
    def aggregate(
        self,
        initializer: object,
        aggregator: Callable[[V, A], object],
        merger: Callable[..., object] | None = None,
        *,
        value: type[A],
        **options: Unpack[AggregateOptions],
    ) -> Table[T, A]: ...
    @overload
    def aggregate(
        self,
        initializer: object,
        aggregator: Callable[[K, V, A], object],
        merger: Callable[..., object] | None = None,
        *,
        value: type[A],
        **options: Unpack[AggregateOptions],
    ) -> Table[T, A]: ...
    @overload
    def aggregate(
        self,
        initializer: object,
        aggregator: Callable[..., object],
        merger: Callable[..., object] | None = None,
        *,
        value: Declared,
        **options: Unpack[AggregateOptions],
    ) -> Table[T, Any]: ...
    def aggregate(
        self,
        initializer: Any,
        aggregator: Callable[..., Any],
        merger: Callable[..., Any] | None = None,
        *,
        value: object = None,
        name: str | None = None,
        emit: Emit = "changes",
    ) -> Table[T, Any]:
        """Fold the values of a key with `aggregator`, starting with `initializer`.

        >>> totals = by_user.aggregate(initializer=0.0, aggregator=lambda k, v, total: total + v["amount"])

        Args:
            initializer: The initial value, or a function without arguments that returns it.
            aggregator: Called with key, value and the current aggregate (or with value and aggregate); returns the
                next aggregate.
            merger: Merges the aggregates of two sessions in Kafka Streams. Accepted for sessions and never called:
                the records of merged sessions are folded again in the order of time.
            value: The type of the aggregate, if tracing cannot infer it and it should be typed.
            name: The name of the table.
            emit: `"changes"`, or `"each_record"`.
        """
        return self._fold(initializer, aggregator, merger, value, name, emit)

    def _fold(
        self,
        initializer: Any,
        aggregator: Callable[..., Any],
        merger: Callable[..., Any] | None,
        value: object,
        name: str | None,
        emit: Emit,
    ) -> Table[T, Any]:
        at = calling_location()
        if merger is not None and not isinstance(self._window, Session):
            raise TopologyError("only sessions are merged", hint="leave out merger=, or use session(...)", at=at)
        aggregation = fold_of(Function.of(aggregator, (2, 3)), initializer, value, at)
        return self._aggregate(aggregation, name, emit, "aggregate")

    @overload
    def sum(self, of: None = None, **options: Unpack[AggregateOptions]) -> Table[T, V]: ...
    @overload
    def sum(self, of: str, **options: Unpack[AggregateOptions]) -> Table[T, Any]: ...
    @overload
    def sum(self, of: Callable[[V], R], **options: Unpack[AggregateOptions]) -> Table[T, R]: ...
    @overload
    def sum(self, of: Callable[[K, V], R], **options: Unpack[AggregateOptions]) -> Table[T, R]: ...
    def sum(self, of: Selector | None = None, *, name: str | None = None, emit: Emit = "changes") -> Table[T, Any]:
        """Sum a field, or the results of a function of the value. Nulls are ignored."""
        return self._of("sum", of, name, emit)

    @overload
    def min(self, of: None = None, **options: Unpack[AggregateOptions]) -> Table[T, V]: ...
    @overload
    def min(self, of: str, **options: Unpack[AggregateOptions]) -> Table[T, Any]: ...
    @overload
    def min(self, of: Callable[[V], R], **options: Unpack[AggregateOptions]) -> Table[T, R]: ...
    @overload
    def min(self, of: Callable[[K, V], R], **options: Unpack[AggregateOptions]) -> Table[T, R]: ...
    def min(self, of: Selector | None = None, *, name: str | None = None, emit: Emit = "changes") -> Table[T, Any]:
        """Return the minimum. Nulls are ignored."""
        return self._of("min", of, name, emit)

    @overload
    def max(self, of: None = None, **options: Unpack[AggregateOptions]) -> Table[T, V]: ...
    @overload
    def max(self, of: str, **options: Unpack[AggregateOptions]) -> Table[T, Any]: ...
    @overload
    def max(self, of: Callable[[V], R], **options: Unpack[AggregateOptions]) -> Table[T, R]: ...
    @overload
    def max(self, of: Callable[[K, V], R], **options: Unpack[AggregateOptions]) -> Table[T, R]: ...
    def max(self, of: Selector | None = None, *, name: str | None = None, emit: Emit = "changes") -> Table[T, Any]:
        """Return the maximum. Nulls are ignored."""
        return self._of("max", of, name, emit)

    @overload
    def avg(self, of: None = None, **options: Unpack[AggregateOptions]) -> Table[T, float]: ...
    @overload
    def avg(self, of: str, **options: Unpack[AggregateOptions]) -> Table[T, float]: ...
    @overload
    def avg(self, of: Callable[[V], object], **options: Unpack[AggregateOptions]) -> Table[T, float]: ...
    @overload
    def avg(self, of: Callable[[K, V], object], **options: Unpack[AggregateOptions]) -> Table[T, float]: ...
    def avg(self, of: Selector | None = None, *, name: str | None = None, emit: Emit = "changes") -> Table[T, float]:
        """Return the mean. Nulls are ignored."""
        return self._of("avg", of, name, emit)

    @overload
    def collect_list(self, of: None = None, **options: Unpack[AggregateOptions]) -> Table[T, list[V]]: ...
    @overload
    def collect_list(self, of: str, **options: Unpack[AggregateOptions]) -> Table[T, list[Any]]: ...
    @overload
    def collect_list(self, of: Callable[[V], R], **options: Unpack[AggregateOptions]) -> Table[T, list[R]]: ...
    @overload
    def collect_list(self, of: Callable[[K, V], R], **options: Unpack[AggregateOptions]) -> Table[T, list[R]]: ...
    def collect_list(
        self, of: Selector | None = None, *, name: str | None = None, emit: Emit = "changes"
    ) -> Table[T, list[Any]]:
        """Collect all values in the order of arrival."""
        return self._of("collect_list", of, name, emit)

    @overload
    def count_distinct(self, of: None = None, **options: Unpack[AggregateOptions]) -> Table[T, int]: ...
    @overload
    def count_distinct(self, of: str, **options: Unpack[AggregateOptions]) -> Table[T, int]: ...
    @overload
    def count_distinct(self, of: Callable[[V], object], **options: Unpack[AggregateOptions]) -> Table[T, int]: ...
    @overload
    def count_distinct(self, of: Callable[[K, V], object], **options: Unpack[AggregateOptions]) -> Table[T, int]: ...
    def count_distinct(
        self, of: Selector | None = None, *, name: str | None = None, emit: Emit = "changes"
    ) -> Table[T, int]:
        """Count the distinct values exactly. Nulls are ignored."""
        return self._of("count_distinct", of, name, emit)

    @overload
    def latest(self, of: None = None, **options: Unpack[AggregateOptions]) -> Table[T, V]: ...
    @overload
    def latest(self, of: str, **options: Unpack[AggregateOptions]) -> Table[T, Any]: ...
    @overload
    def latest(self, of: Callable[[V], R], **options: Unpack[AggregateOptions]) -> Table[T, R]: ...
    @overload
    def latest(self, of: Callable[[K, V], R], **options: Unpack[AggregateOptions]) -> Table[T, R]: ...
    def latest(self, of: Selector | None = None, *, name: str | None = None, emit: Emit = "changes") -> Table[T, Any]:
        """Keep the value with the greatest event time; of several, the last to arrive."""
        return self._of("latest", of, name, emit)

    @overload
    def earliest(self, of: None = None, **options: Unpack[AggregateOptions]) -> Table[T, V]: ...
    @overload
    def earliest(self, of: str, **options: Unpack[AggregateOptions]) -> Table[T, Any]: ...
    @overload
    def earliest(self, of: Callable[[V], R], **options: Unpack[AggregateOptions]) -> Table[T, R]: ...
    @overload
    def earliest(self, of: Callable[[K, V], R], **options: Unpack[AggregateOptions]) -> Table[T, R]: ...
    def earliest(self, of: Selector | None = None, *, name: str | None = None, emit: Emit = "changes") -> Table[T, Any]:
        """Keep the value with the smallest event time; of several, the first to arrive."""
        return self._of("earliest", of, name, emit)

    if TYPE_CHECKING:
        collectList = collect_list
        countDistinct = count_distinct

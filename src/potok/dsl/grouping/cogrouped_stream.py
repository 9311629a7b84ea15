"""Aggregate several streams that are grouped by the same key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Unpack, overload

from potok.dsl.camel_case import Spelling
from potok.dsl.graph_builder import GraphBuilder, calling_location
from potok.dsl.handle import A, Declared, Emit, K, R, W
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.records.rows import converter_of
from potok.records.schemas.arrow_types import schema_of_arrow
from potok.topology.inference.infer import infer_upstream
from potok.topology.inference.step import arrow_of
from potok.topology.nodes import MapValues, Merge, Node, Session, Window

if TYPE_CHECKING:
    from potok.dsl.grouping.aggregating import AggregateOptions, Aggregating
    from potok.dsl.grouping.grouped_stream import GroupedStream
    from potok.dsl.table import Table

Part = tuple[Node, Function]
"""A stream and the aggregator of its records."""


class CogroupedStream(Spelling, Generic[K, A]):
    """Streams that share an aggregate of type A: the aggregator of its stream adds each record.

    Records of one key from several topics are taken in the order of arrival: the result does not depend on it if the
    aggregators write to different fields, or commute.
    """

    def __init__(self, graph: GraphBuilder, parts: tuple[Part, ...], window: Window | None = None) -> None:
        self._graph, self._parts, self._window = graph, parts, window

    def __repr__(self) -> str:
        return f"<CogroupedStream of {', '.join(node.name for node, _ in self._parts)}>"

    @overload
    def cogroup(self, grouped: GroupedStream[K, W], aggregator: Callable[[W, A], A]) -> CogroupedStream[K, A]: ...
    @overload
    def cogroup(self, grouped: GroupedStream[K, W], aggregator: Callable[[K, W, A], A]) -> CogroupedStream[K, A]: ...
    def cogroup(self, grouped: GroupedStream[K, Any], aggregator: Callable[..., Any]) -> CogroupedStream[K, A]:
        """Add a stream that is grouped by the same key.

        Args:
            grouped: The stream.
            aggregator: Called with key, value and the current aggregate (or with value and aggregate); returns the
                next aggregate.
        """
        at = calling_location()
        if not isinstance(grouped, self._graph.classes.grouped_stream):
            raise TopologyError(
                f"cogroup got {grouped!r}", hint="group it first: cogroup(clicks.group_by_key(), aggregator)", at=at
            )
        if grouped._graph is not self._graph:
            raise TopologyError("cannot cogroup streams of two builders", hint="use one StreamsBuilder", at=at)
        part = grouped._node, Function.of(aggregator, (2, 3))
        return CogroupedStream(self._graph, (*self._parts, part), self._window)

    def windowed_by(self, window: Window) -> CogroupedStream[Any, A]:
        """Group by key and window."""
        at = calling_location()
        if not isinstance(window, Window):
            raise TopologyError(f"windowed_by got {window!r}", hint="write windowed_by(tumbling(hours(1)))", at=at)
        if isinstance(window, Session) and (window.opens or window.closes):
            raise TopologyError(
                "a session of several streams cannot be opened or closed by a function of the value",
                hint="omit opens= and closes=, or merge the streams and aggregate the merged stream",
                at=at,
            )
        return CogroupedStream(self._graph, self._parts, window)

    @overload
    def aggregate(
        self,
        initializer: A | Callable[[], A],
        merger: Callable[..., object] | None = None,
        *,
        value: None = None,
        **options: Unpack[AggregateOptions],
    ) -> Table[K, A]: ...
    @overload
    def aggregate(
        self,
        initializer: object,
        merger: Callable[..., object] | None = None,
        *,
        value: type[R],
        **options: Unpack[AggregateOptions],
    ) -> Table[K, R]: ...
    @overload
    def aggregate(
        self,
        initializer: object,
        merger: Callable[..., object] | None = None,
        *,
        value: Declared,
        **options: Unpack[AggregateOptions],
    ) -> Table[K, Any]: ...
    def aggregate(
        self,
        initializer: Any,
        merger: Callable[..., Any] | None = None,
        *,
        value: object = None,
        name: str | None = None,
        emit: Emit = "changes",
    ) -> Table[K, Any]:
        """Return one aggregate per key, from the records of all streams.

        >>> by_user = orders.group_by_key().cogroup(add_order).cogroup(clicks.group_by_key(), add_click)
        >>> activity = by_user.aggregate(lambda: {"orders": 0, "clicks": 0}, name="activity")

        Args:
            initializer: The initial value, or a function without arguments that returns it.
            merger: Merges the aggregates of two sessions in Kafka Streams. Accepted for sessions and never called.
            value: The type of the aggregate, if it should be typed.
            name: The name of the table.
            emit: `"changes"`, or `"each_record"`.
        """
        dispatch = Function.of(_dispatcher(self._parts), (3,))
        return self._together(name)._fold(initializer, dispatch.callable, merger, value, name, emit)

    def _together(self, name: str | None) -> Aggregating[K, Any, Any]:
        """Merge the streams; each value is paired with the number of its stream."""
        at = calling_location()
        merged = self._graph.step_name(None, f"{name or self._parts[0][0].name}.cogroup")
        tagged: list[Node] = []
        for number, (upstream, _) in enumerate(self._parts, 1):
            function = replace(Function.of(_tagger(number - 1), (1,)), name=f"stream {number}")
            tagged.append(MapValues(f"{merged}.{number}", at, upstream, function))
            self._graph.add(tagged[-1])
        merge = Merge(merged, at, tuple(tagged))
        self._graph.add(merge)
        grouped: GroupedStream[K, Any] = self._graph.classes.grouped_stream(self._graph, merge)
        return grouped if self._window is None else grouped.windowed_by(self._window)

    if TYPE_CHECKING:
        windowedBy = windowed_by


def _tagger(number: int) -> Callable[[Any], Any]:
    def tag(value: Any) -> Any:
        return number, dict(value) if isinstance(value, dict) else value

    return tag


def _dispatcher(parts: tuple[Part, ...]) -> Callable[[Any, Any, Any], Any]:
    types = [infer_upstream(upstream).value for upstream, _ in parts]
    # A schema carries the classes of its type into the processes of tasks.
    schemas = [None if type_ is None else schema_of_arrow(type_) for type_ in types]
    calls = [(function.callable, function.arity == 3) for _, function in parts]
    converters: list[Callable[[Any], Any]] = []

    def dispatch(key: Any, tagged: Any, aggregate: Any) -> Any:
        if not converters:
            converters.extend(converter_of(arrow_of(schema)) for schema in schemas)
        number, tagged_value = tagged
        value = converters[number](tagged_value)
        call, with_key = calls[number]
        return call(key, value, aggregate) if with_key else call(value, aggregate)

    return dispatch

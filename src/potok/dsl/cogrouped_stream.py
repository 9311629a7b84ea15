"""Several streams, grouped by one key, that make one aggregate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from potok.dsl.camel_case import Spelling
from potok.dsl.graph_builder import GraphBuilder, calling_location
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.records.value import wrap
from potok.topology.nodes import MapValues, Merge, Node, Session, Window

if TYPE_CHECKING:
    from potok.dsl.grouped_stream import Aggregating, GroupedStream
    from potok.dsl.table import Table

Part = tuple[Node, Function]
"""A stream, and how its records are added to the aggregate."""


class CogroupedStream(Spelling):
    """Streams that share an aggregate: each record is added by the aggregator of its stream.

    Values are seen as without a declared type. Records of one key that come from several topics are taken as they come:
    aggregators that write to different fields, or commute, give one result whatever the order.
    """

    def __init__(self, graph: GraphBuilder, parts: tuple[Part, ...], window: Window | None = None) -> None:
        self._graph, self._parts, self._window = graph, parts, window

    def __repr__(self) -> str:
        return f"<CogroupedStream of {', '.join(node.name for node, _ in self._parts)}>"

    def cogroup(self, grouped: GroupedStream, aggregator: Callable[..., Any]) -> CogroupedStream:
        """One more stream, grouped by the same key.

        Args:
            grouped: The stream.
            aggregator: Called with key, value and the aggregate so far (or with value and aggregate); returns the next
                one.
        """
        from potok.dsl.grouped_stream import GroupedStream  # a grouped stream has the verb that leads here

        at = calling_location()
        if not isinstance(grouped, GroupedStream):
            raise TopologyError(
                f"cogroup got {grouped!r}", hint="group it first: cogroup(clicks.group_by_key(), aggregator)", at=at
            )
        if grouped._graph is not self._graph:
            raise TopologyError("cannot cogroup streams of two builders", hint="use one StreamsBuilder", at=at)
        part = grouped._node, Function.of(aggregator, (2, 3))
        return CogroupedStream(self._graph, (*self._parts, part), self._window)

    def windowed_by(self, window: Window) -> CogroupedStream:
        """The same by key and window."""
        at = calling_location()
        if not isinstance(window, Window):
            raise TopologyError(f"windowed_by got {window!r}", hint="write windowed_by(tumbling(hours(1)))", at=at)
        if isinstance(window, Session) and (window.opens or window.closes):
            raise TopologyError(
                "a session of several streams cannot be opened or closed by a function of the value",
                hint="leave opens= and closes= out, or merge the streams and aggregate that",
                at=at,
            )
        return CogroupedStream(self._graph, self._parts, window)

    def aggregate(
        self,
        initializer: Any,
        merger: Callable[..., Any] | None = None,
        *,
        value: object = None,
        name: str = "",
        emit: str = "changes",
    ) -> Table:
        """One aggregate for each key, from the records of all streams.

        >>> by_user = orders.group_by_key().cogroup(add_order).cogroup(clicks.group_by_key(), add_click)
        >>> activity = by_user.aggregate(lambda: {"orders": 0, "clicks": 0}, name="activity")

        Args:
            initializer: The value to begin with, or a function without arguments that makes it.
            merger: Joins two aggregates, for sessions that grow together.
            value: The type of the aggregate, if it should be typed.
            name: The table's name.
            emit: When changes go on: `changes` or `each_record`.
        """
        dispatch = Function.of(_dispatcher([function for _, function in self._parts]), (3,))
        return self._together(name).aggregate(initializer, dispatch.callable, merger, value=value, name=name, emit=emit)

    def _together(self, name: str) -> Aggregating:
        """The streams as one, each value beside the number of its stream."""
        from potok.dsl.grouped_stream import GroupedStream

        at = calling_location()
        merged = self._graph.step_name("", f"{name or self._parts[0][0].name}.cogroup")
        tagged: list[Node] = []
        for number, (upstream, _) in enumerate(self._parts, 1):
            function = replace(Function.of(_tagger(number - 1), (1,)), name=f"stream {number}")
            tagged.append(MapValues(f"{merged}.{number}", at, upstream, function))
            self._graph.add(tagged[-1])
        merge = Merge(merged, at, tuple(tagged))
        self._graph.add(merge)
        grouped = GroupedStream(self._graph, merge)
        return grouped if self._window is None else grouped.windowed_by(self._window)


def _tagger(number: int) -> Callable[[Any], Any]:
    def tag(value: Any) -> Any:
        return number, dict(value) if isinstance(value, dict) else value

    return tag


def _dispatcher(functions: list[Function]) -> Callable[[Any, Any, Any], Any]:
    calls = [(function.callable, function.arity == 3) for function in functions]

    def dispatch(key: Any, tagged: Any, aggregate: Any) -> Any:
        number, value = tagged
        call, with_key = calls[number]
        return call(key, wrap(value), aggregate) if with_key else call(wrap(value), aggregate)

    return dispatch

"""A stream whose records are grouped by key: the verbs that make a table of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from potok.dsl.cogrouped_stream import CogroupedStream
from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import Handle, Selector, selector
from potok.dsl.serdes import schema_of
from potok.dsl.table import Table
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.topology.nodes import Aggregate, Aggregation, Session, Window


class Aggregating(Handle):
    """The aggregates, the same with and without a window.

    Each takes a `name` for its table, and `emit`: by default a table emits one change per row and batch;
    `emit="each_record"` makes it emit one for each record, at the price of the pre-aggregation.
    """

    _window: Window | None = None
    _final = False

    def _aggregate(self, aggregation: Aggregation, name: str, emit: str, verb: str) -> Table:
        at = calling_location()
        if emit not in ("changes", "each_record"):
            raise TopologyError(f'emit="{emit}" is not known', hint='write emit="changes" or emit="each_record"', at=at)
        step = self._state_name(name, verb)
        node = Aggregate(step, at, self._node, aggregation, self._window, emit == "each_record")
        self._graph.add(node)
        table = Table(self._graph, node)
        return table.emit_final() if self._final else table

    def _of(self, kind: str, of: Selector | None, name: str, emit: str) -> Table:
        return self._aggregate(Aggregation(kind, selector(of) if of is not None else None), name, emit, kind)

    def count(self, *, name: str = "", emit: str = "changes") -> Table:
        """How many records each key has had.

        >>> counts = orders.group_by("user_id").count(name="order_counts")
        """
        return self._aggregate(Aggregation("count"), name, emit, "count")

    def reduce(self, reducer: Callable[..., Any], *, name: str = "", emit: str = "changes") -> Table:
        """Combine the values of a key two at a time; the first value of a key stands as it is.

        >>> totals = amounts.group_by_key().reduce(lambda v1, v2: v1 + v2)
        """
        return self._aggregate(Aggregation("reduce", Function.of(reducer, (2,))), name, emit, "reduce")

    def aggregate(
        self,
        initializer: Any,
        aggregator: Callable[..., Any],
        merger: Callable[..., Any] | None = None,
        *,
        value: object = None,
        name: str = "",
        emit: str = "changes",
    ) -> Table:
        """Fold the values of a key, from `initializer`, by `aggregator`.

        >>> totals = by_user.aggregate(initializer=0.0, aggregator=lambda k, v, total: total + v["amount"])

        Args:
            initializer: The value to begin with, or a function without arguments that makes it.
            aggregator: Called with key, value and the aggregate so far (or with value and aggregate); returns the
                next one.
            merger: Merges the aggregates of two sessions in Kafka Streams. Accepted for sessions, and not needed:
                their records are folded again in the order of time, so it is never called.
            value: The type of the aggregate, if it cannot be found by tracing and should be typed.
            name: The table's name.
            emit: `"changes"`, or `"each_record"`.
        """
        at = calling_location()
        if merger is not None and not isinstance(self._window, Session):
            raise TopologyError("only sessions are merged", hint="leave out merger=, or use session(...)", at=at)
        function = Function.of(aggregator, (2, 3))
        schema = schema_of(value, at)
        if callable(initializer):
            make = Function.of(initializer, (0,))
            aggregation = Aggregation("fold", function, initializer(), make, schema)
        else:
            aggregation = Aggregation("fold", function, initializer, None, schema)
        return self._aggregate(aggregation, name, emit, "aggregate")

    def sum(self, of: Selector | None = None, *, name: str = "", emit: str = "changes") -> Table:
        """The sum of a field, or of a function of the value; nulls are left out."""
        return self._of("sum", of, name, emit)

    def min(self, of: Selector | None = None, *, name: str = "", emit: str = "changes") -> Table:
        """The least; nulls are left out."""
        return self._of("min", of, name, emit)

    def max(self, of: Selector | None = None, *, name: str = "", emit: str = "changes") -> Table:
        """The greatest; nulls are left out."""
        return self._of("max", of, name, emit)

    def avg(self, of: Selector | None = None, *, name: str = "", emit: str = "changes") -> Table:
        """The mean; nulls are left out."""
        return self._of("avg", of, name, emit)

    def collect_list(self, of: Selector | None = None, *, name: str = "", emit: str = "changes") -> Table:
        """All of them, in the order they came."""
        return self._of("collect_list", of, name, emit)

    def count_distinct(self, of: Selector | None = None, *, name: str = "", emit: str = "changes") -> Table:
        """How many different ones there are, exactly; nulls are left out."""
        return self._of("count_distinct", of, name, emit)

    def latest(self, of: Selector | None = None, *, name: str = "", emit: str = "changes") -> Table:
        """The one with the greatest event time; of several, the one that came last."""
        return self._of("latest", of, name, emit)

    def earliest(self, of: Selector | None = None, *, name: str = "", emit: str = "changes") -> Table:
        """The one with the least event time; of several, the one that came first."""
        return self._of("earliest", of, name, emit)


class GroupedStream(Aggregating):
    """Records grouped by key."""

    def windowed_by(self, window: Window) -> WindowedStream:
        """Group by key and window.

        >>> hourly = by_user.windowed_by(tumbling(hours(1), grace=minutes(5)))
        """
        if not isinstance(window, Window):
            raise TopologyError(
                f"windowed_by got {window!r}",
                hint="write windowed_by(tumbling(hours(1))), or use hopping, sliding or session",
                at=calling_location(),
            )
        return WindowedStream(self, window)

    def cogroup(self, aggregator: Callable[..., Any]) -> CogroupedStream:
        """Begin an aggregate that several streams share.

        >>> by_user = orders.group_by_key().cogroup(add_order).cogroup(clicks.group_by_key(), add_click)

        Args:
            aggregator: Called with key, value and the aggregate so far (or with value and aggregate); returns the next
                one.
        """
        return CogroupedStream(self._graph, ((self._node, Function.of(aggregator, (2, 3))),))


class WindowedStream(Aggregating):
    """Records grouped by key and window."""

    def __init__(self, grouped: GroupedStream, window: Window) -> None:
        super().__init__(grouped._graph, grouped._node)
        self._window = window

    def emit_final(self) -> WindowedStream:
        """Emit nothing until a window closes, and then its result, once.

        >>> by_user.windowed_by(tumbling(hours(1))).emit_final().count(name="hourly").to_stream().to("hourly-counts")
        """
        chosen = WindowedStream(GroupedStream(self._graph, self._node), self._checked)
        chosen._final = True
        return chosen

    @property
    def _checked(self) -> Window:
        assert self._window is not None
        return self._window

"""A stream whose records are grouped by key, or by key and window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from potok.dsl.aggregating import Aggregating
from potok.dsl.cogrouped_stream import CogroupedStream
from potok.dsl.graph_builder import calling_location
from potok.dsl.handle import A, K, V
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.topology.nodes import Window


class GroupedStream(Aggregating[K, V, K]):
    """Records grouped by key."""

    def windowed_by(self, window: Window) -> WindowedStream[K, V]:
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

    @overload
    def cogroup(self, aggregator: Callable[[V, A], A]) -> CogroupedStream[K, A]: ...
    @overload
    def cogroup(self, aggregator: Callable[[K, V, A], A]) -> CogroupedStream[K, A]: ...
    def cogroup(self, aggregator: Callable[..., Any]) -> CogroupedStream[K, Any]:
        """Start an aggregate that several streams share.

        >>> by_user = orders.group_by_key().cogroup(add_order).cogroup(clicks.group_by_key(), add_click)

        Args:
            aggregator: Called with key, value and the current aggregate (or with value and aggregate); returns the
                next aggregate.
        """
        return CogroupedStream(self._graph, ((self._node, Function.of(aggregator, (2, 3))),))

    if TYPE_CHECKING:
        windowedBy = windowed_by


class WindowedStream(Aggregating[K, V, Any]):
    """Records grouped by key and window. The keys of the resulting tables contain the window."""

    def __init__(self, grouped: GroupedStream[K, V], window: Window) -> None:
        super().__init__(grouped._graph, grouped._node)
        self._window = window

    def emit_final(self) -> WindowedStream[K, V]:
        """Emit the result of a window once, when the window closes, and nothing before.

        >>> by_user.windowed_by(tumbling(hours(1))).emit_final().count(name="hourly").to_stream().to("hourly-counts")
        """
        grouped: GroupedStream[K, V] = GroupedStream(self._graph, self._node)
        chosen = WindowedStream(grouped, self._checked)
        chosen._final = True
        return chosen

    @property
    def _checked(self) -> Window:
        assert self._window is not None
        return self._window

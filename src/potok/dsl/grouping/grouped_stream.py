"""A stream whose records are grouped by key, or by key and window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from potok.dsl.graph_builder import calling_location
from potok.dsl.grouping.aggregating import Aggregating
from potok.dsl.grouping.cogrouped_stream import CogroupedStream
from potok.dsl.handle import A, K, V
from potok.duration import Duration, to_ms
from potok.errors import TopologyError
from potok.expressions.function import Function
from potok.topology.nodes import Match, Ordered, Window
from potok.topology.patterns.check import after_match, check
from potok.topology.patterns.pattern import Pattern
from potok.topology.patterns.program import compile_pattern
from potok.topology.patterns.tree import Semantics

if TYPE_CHECKING:
    from potok.dsl.grouping.matched_stream import MatchedStream


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

    def match(
        self,
        pattern: Pattern,
        *,
        after: str | None = None,
        grace: Duration = 0,
        max_runs: int = 10_000,
        name: str | None = None,
    ) -> MatchedStream[K, Any]:
        """Find the matches of a pattern among the records of each key, in event-time order.

        >>> alerts = payments.group_by_key().match(fraud, after="skip_past_last", grace="5 s", name="fraud")
        >>> alerts.to("alerts")

        Args:
            pattern: Built with `potok.patterns.cep`.
            after: Where to look for the next match: `no_skip`, `skip_to_next`, `skip_past_last`, `skip_to_first(x)` or
                `skip_to_last(x)`. By default `no_skip`, and `skip_past_last` for a pattern from text.
            grace: How far a record may be behind the stream time of its partition; a record further behind is late
                and becomes a dead letter.
            max_runs: How many matches of a key can be open; with more, the record that began the oldest becomes a dead
                letter.
            name: Names the step and its state.
        """
        at = calling_location()
        if not isinstance(pattern, Pattern):
            raise TopologyError(f"match got {pattern!r}", hint='write match(cep.pattern("small{3,} big", ...))', at=at)
        check(pattern, at)
        compile_pattern(pattern)
        chosen = after or ("no_skip" if pattern.semantics is Semantics.FIRST else "skip_past_last")
        grace_ms = to_ms(grace)
        if grace_ms < 0 or max_runs < 1:
            raise TopologyError("grace and max_runs must be positive", hint='write match(fraud, grace="5 s")', at=at)
        step = self._state_name(name, "match")
        ordered = Ordered(f"{step}.ordered", at, self._node, grace_ms)
        self._graph.add(ordered)
        node = Match(step, at, ordered, pattern, after_match(chosen, pattern, at), max_runs)
        self._graph.add(node)
        return self._graph.classes.matched_stream(self._graph, node)

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

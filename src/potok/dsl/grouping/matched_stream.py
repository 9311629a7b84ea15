"""The matches of a pattern."""

from __future__ import annotations

from potok.dsl.graph_builder import GraphBuilder, calling_location
from potok.dsl.handle import K, V
from potok.dsl.stream import Stream
from potok.errors import TopologyError
from potok.topology.nodes import Match, Timeouts


class MatchedStream(Stream[K, V]):
    """The matches of a pattern: under the key of their records, each variable with the list of values it has taken."""

    def __init__(self, graph: GraphBuilder, node: Match) -> None:
        super().__init__(graph, node)
        self._match = node
        self._timeouts: Timeouts | None = None

    @property
    def timeouts(self) -> Stream[K, V]:
        """Partial matches whose time limit (`within`) has passed.

        >>> alerts.timeouts.to("almost")
        """
        if not self._match.pattern.ends_in_time:
            hint = 'add .within("10 min") to the pattern'
            raise TopologyError("a pattern without a time limit has no timeouts", hint=hint, at=calling_location())
        if self._timeouts is None:
            self._timeouts = Timeouts(f"{self._match.name}.timeouts", calling_location(), self._match)
            self._graph.add(self._timeouts)
        return Stream(self._graph, self._timeouts)

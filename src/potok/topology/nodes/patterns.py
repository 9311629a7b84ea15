"""Patterns over the records of a key."""

from __future__ import annotations

from dataclasses import dataclass

from potok.duration import show_ms
from potok.expressions.function import Function
from potok.topology.nodes.node import Node
from potok.topology.patterns.check import ends_absent, stays_open
from potok.topology.patterns.pattern import Pattern
from potok.topology.patterns.tree import AfterMatch, SkipTo, variables_of


@dataclass(frozen=True, slots=True, eq=False)
class Match(Node):
    """Finds the matches of a pattern among the records of each key, which come in event-time order."""

    upstream: Node
    pattern: Pattern
    after: AfterMatch
    max_runs: int

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(one.condition for one in self.pattern.definitions if one.condition is not None)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of a match, in the order of the pattern."""
        return tuple(variables_of(self.pattern.tree))

    @property
    def keeps(self) -> bool:
        return True

    @property
    def timed(self) -> bool:
        return True

    @property
    def gathers(self) -> bool:
        return True

    @property
    def holds_back_ms(self) -> int:
        """A match has the time of its last record, and may have to wait for the end of those that began before it."""
        waits = self.after.skip is not SkipTo.NO_SKIP or ends_absent(self.pattern.tree)
        return self.pattern.within_ms or 0 if waits else 0

    @property
    def cells(self) -> str:
        """The states of open matches are numbered by the pattern."""
        return f"of the pattern {self.pattern}, {self.pattern.semantics.value}"

    @property
    def detail(self) -> str:
        within = "" if self.pattern.within_ms is None else f" within {show_ms(self.pattern.within_ms)}"
        warning = "; a match can stay open for ever: add within" if stays_open(self.pattern) else ""
        return f"{self.pattern}{within}, {self.after}{warning}"


@dataclass(frozen=True, slots=True, eq=False)
class Timeouts(Node):
    """What had matched of a pattern when its time was over."""

    upstream: Match

    @property
    def upstream_output(self) -> int:
        return 0

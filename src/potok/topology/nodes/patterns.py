"""Patterns over the records of a key."""

from __future__ import annotations

from dataclasses import dataclass

from potok.duration import show_ms
from potok.expressions.function import Function
from potok.topology.nodes.node import Node
from potok.topology.patterns.check import ends_absent, stays_open
from potok.topology.patterns.output import MatchOutput, Shift, TieOrder
from potok.topology.patterns.pattern import Pattern
from potok.topology.patterns.tree import AfterMatch, SkipTo, anchored, show, variables_of


@dataclass(frozen=True, slots=True, eq=False)
class Match(Node):
    """Finds the matches of a pattern among the records of each key, which come in event-time order."""

    upstream: Node
    pattern: Pattern
    after: AfterMatch
    max_runs: int
    output: MatchOutput | None = None
    """Computes what is emitted; without it, a match is the list of values of each variable."""
    shifts: tuple[Shift, ...] = ()
    """Fields of neighbouring records that are added to each record."""
    ties: tuple[TieOrder, ...] = ()
    numbered: bool = False
    """Whether matches are counted, which is remembered for each key."""
    unmatched: bool = False
    """Whether records that no match contains are emitted as well."""
    shows_timeouts: bool = False
    """Whether partial matches whose time limit has passed are emitted like matches."""

    @property
    def before(self) -> int:
        """How many earlier records of a key are kept."""
        return max((-shift.by for shift in self.shifts if shift.by < 0), default=0)

    @property
    def ahead(self) -> int:
        """How many later records of a key are awaited."""
        return max((shift.by for shift in self.shifts if shift.by > 0), default=0)

    @property
    def looks_around(self) -> bool:
        """Whether a record is seen with its neighbours, or as the first of its key."""
        return bool(self.shifts) or anchored(self.pattern.tree)

    @property
    def remembers(self) -> bool:
        """Whether state is kept for every key forever."""
        return self.numbered or self.looks_around

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
        shifts = f", with {', '.join(shift.name for shift in self.shifts)}" if self.shifts else ""
        return f"of the pattern {show(self.pattern.tree)}, {self.pattern.semantics.value}{shifts}"

    @property
    def detail(self) -> str:
        within = "" if self.pattern.within_ms is None else f" within {show_ms(self.pattern.within_ms)}"
        warning = "; a match can stay open forever: add within" if stays_open(self.pattern) else ""
        kept = "; keeps a record of every key forever" if self.remembers else ""
        return f"{self.pattern}{within}, {self.after}{warning}{kept}"


@dataclass(frozen=True, slots=True, eq=False)
class Timeouts(Node):
    """The partial matches of a pattern whose time limit has passed."""

    upstream: Match

    @property
    def upstream_output(self) -> int:
        return 0

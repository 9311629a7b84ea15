"""MATCH_RECOGNIZE by naive backtracking over all rows of a partition: the first way in order of preference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Variable:
    name: str
    excluded: bool = False


@dataclass(frozen=True)
class Chain:
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Either:
    options: tuple[Any, ...]


@dataclass(frozen=True)
class AnyOrder:
    options: tuple[Any, ...]


@dataclass(frozen=True)
class Times:
    body: Any
    least: int
    most: int | None
    reluctant: bool


@dataclass(frozen=True)
class Anchor:
    symbol: str


class Took(NamedTuple):
    """A row that a variable has taken."""

    name: str
    row: int
    excluded: bool


Taken = tuple[Took, ...]
Condition = Callable[[list[dict[str, Any]], Taken, int], bool]
"""Whether the last row taken, whose number is given, satisfies a condition; it is among those taken."""


class Match(NamedTuple):
    number: int
    start: int
    taken: Taken


@dataclass
class Outcome:
    matches: list[Match]
    unmatched: list[int]
    """The rows that no match contains, in order."""
    decided_up_to: int
    """The number of the first row about which more rows could say something else."""


class _Undecided(Exception):
    """Rows that are not there would have to be looked at."""


class RowPatternOracle:
    """`skip` is PAST, NEXT, or FIRST or LAST with a variable. With `bounded` no row follows the last one."""

    def __init__(
        self,
        pattern: Any,
        conditions: dict[str, Condition],
        rows: list[dict[str, Any]],
        *,
        skip: tuple[str, str],
        within_ms: int | None = None,
        bounded: bool,
    ) -> None:
        self.pattern, self.conditions, self.rows, self.skip = pattern, conditions, rows, skip
        self.within_ms, self.bounded = within_ms, bounded

    def find(self) -> Outcome:
        matches: list[Match] = []
        start, covered = 0, set[int]()
        while start < len(self.rows):
            try:
                taken = self._first(start)
            except _Undecided:
                break
            if taken is None:
                start += 1
                continue
            matches.append(Match(len(matches) + 1, start, taken))
            covered |= {took.row for took in taken} or {start}
            start = self._following(start, taken)
        return Outcome(matches, [row for row in range(start) if row not in covered], start)

    def _first(self, start: int) -> Taken | None:
        self.start = start
        limit = None if self.within_ms is None else self.rows[start]["ROWTIME"] + self.within_ms
        self.stop = next(
            (row for row in range(start, len(self.rows)) if limit is not None and self.rows[row]["ROWTIME"] >= limit),
            len(self.rows),
        )
        return next(self._ways(self.pattern, start, (), lambda at, taken: iter((taken,))), None)

    def _ways(self, part: Any, at: int, taken: Taken, then: Callable[[int, Taken], Iterator[Taken]]) -> Iterator[Taken]:
        match part:
            case Variable(name, excluded):
                if at == len(self.rows) and not self.bounded and self.within_ms is None:
                    raise _Undecided
                if at < self.stop:
                    longer = (*taken, Took(name, at, excluded))
                    if name not in self.conditions or self.conditions[name](self.rows, longer, at):
                        yield from then(at + 1, longer)
            case Chain(parts):
                if not parts:
                    yield from then(at, taken)
                else:
                    rest = Chain(parts[1:])
                    yield from self._ways(parts[0], at, taken, lambda n, took: self._ways(rest, n, took, then))
            case Either(options):
                for option in options:
                    yield from self._ways(option, at, taken, then)
            case AnyOrder(options):
                for order in permutations(options):
                    yield from self._ways(Chain(order), at, taken, then)
            case Anchor("^"):
                if at == 0:
                    yield from then(at, taken)
            case Anchor():
                if at == len(self.rows):
                    yield from then(at, taken)
            case Times():
                yield from self._repeated(part, 0, at, taken, then)

    def _repeated(
        self, part: Times, count: int, at: int, taken: Taken, then: Callable[[int, Taken], Iterator[Taken]]
    ) -> Iterator[Taken]:
        def again() -> Iterator[Taken]:
            if part.most is None or count < part.most:
                yield from self._ways(part.body, at, taken, after)

        def after(next_at: int, took: Taken) -> Iterator[Taken]:
            if next_at == at and count >= part.least:
                return  # an empty repetition leads nowhere else
            yield from self._repeated(part, count + 1, next_at, took, then)

        if count < part.least:
            yield from again()
        elif part.reluctant:
            yield from then(at, taken)
            yield from again()
        else:
            yield from again()
            yield from then(at, taken)

    def _following(self, start: int, taken: Taken) -> int:
        if not taken or self.skip[0] == "NEXT":
            return start + 1
        if self.skip[0] == "PAST":
            return taken[-1].row + 1
        rows = [took.row for took in taken if took.name == self.skip[1]]
        target = start + 1 if not rows else rows[0] if self.skip[0] == "FIRST" else rows[-1]
        return max(start + 1, target)

"""Patterns by naive backtracking over all records of a key: every way to match, in order of preference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any, NamedTuple

from potok.topology.patterns.pattern import Pattern
from potok.topology.patterns.tree import (
    Absent,
    AfterMatch,
    Choice,
    Gap,
    Loop,
    Permute,
    Repeat,
    Semantics,
    Sequence,
    SkipTo,
    Spaced,
    Take,
    Tree,
)

Taken = tuple[tuple[str, int], ...]


class Outcome(NamedTuple):
    """What came of one way: a match decided by the record `at`, a match by silence (no `at`), or one cut off by the
    end of its time, at `due`, or of the records."""

    kind: str
    taken: Taken
    at: int | None
    due: int = 0


class Need(NamedTuple):
    """What is asked of the records before the next one that is taken."""

    gap: Gap
    never: tuple[str, ...] = ()
    not_now: tuple[str, ...] = ()
    stops: tuple[tuple[str, tuple[str, ...]], ...] = ()
    moved: bool = False
    gap_ms: int | None = None
    silence_ms: int | None = None
    unless: tuple[str, ...] = ()


Then = Callable[[int, Taken, Need], Iterator[Outcome]]


class Values(list[Any]):
    """What a variable has taken, as a condition sees it."""

    @property
    def first(self) -> Any:
        return self[0] if self else None

    @property
    def last(self) -> Any:
        return self[-1] if self else None


class Oracle:
    def __init__(self, pattern: Pattern, rows: list[tuple[int, Any]]) -> None:
        self.pattern, self.rows = pattern, rows
        self.conditions = {one.name: one.condition for one in pattern.definitions}
        self.preferred = pattern.semantics is Semantics.PREFERRED
        self.gap_ms: int | None = None

    def fits(self, name: str, index: int, taken: Taken) -> bool:
        condition, value = self.conditions[name], self.rows[index][1]
        if condition is None:
            return True
        if condition.arity == 1:
            return bool(condition.callable(value))
        so_far = {name: Values(self.rows[i][1] for n, i in taken if n == name) for name in self.conditions}
        return bool(condition.callable(value, so_far))

    def ways(self, start: int) -> list[Outcome]:
        self.start = start
        limit = self.pattern.within_ms
        self.deadline = None if limit is None else self.rows[start][0] + limit
        self.stop = next(
            (i for i in range(start, len(self.rows)) if self.deadline is not None and self.rows[i][0] >= self.deadline),
            len(self.rows),
        )
        return list(self.go(self.pattern.tree, start, (), Need(Gap.STRICT), [], False, self.end))

    def end(self, at: int, taken: Taken, need: Need) -> Iterator[Outcome]:
        if not need.never and not need.not_now:
            yield Outcome("match", taken, taken[-1][1])
            return
        due = self.due(taken, need.silence_ms)
        for index in range(at, self.stop):
            if due is not None and self.rows[index][0] >= due:
                break
            names = need.never + (need.not_now if index == at else ())
            if any(self.fits(name, index, taken) for name in names):
                return
            if not need.never:
                yield Outcome("match", taken, index)
                return
        yield Outcome("open", taken, None) if due is None else Outcome("silent", taken, None, due)

    def due(self, taken: Taken, gap_ms: int | None) -> int | None:
        """When it is too late for another record."""
        dues = [] if self.deadline is None else [self.deadline]
        if gap_ms is not None:
            dues.append(self.rows[taken[-1][1]][0] + gap_ms)
        return min(dues, default=None)

    def go(
        self, tree: Tree, at: int, taken: Taken, need: Need, ahead: list[str], must: bool, then: Then
    ) -> Iterator[Outcome]:
        match tree:
            case Take(name):
                yield from self.take(name, at, taken, need, then)
            case Choice(options):
                for option in options:
                    yield from self.go(option, at, taken, need, ahead, must, then)
            case Permute(options, gap):
                for order in permutations(options):
                    parts = [(gap, one) for one in order]
                    yield from self.sequence(parts, at, taken, need, ahead, must, then)
            case Sequence(parts):
                listed = [(part.gap, part.node) for part in parts]
                yield from self.sequence(listed, at, taken, need, ahead, must, then)
            case Repeat():
                yield from self.repeat(tree, at, taken, need, ahead, must, then)
            case Spaced(body, gap_ms):
                outer = self.gap_ms
                self.gap_ms = shorter(outer, gap_ms)

                def behind(at: int, taken: Taken, need: Need) -> Iterator[Outcome]:
                    inner, self.gap_ms = self.gap_ms, outer
                    yield from then(at, taken, need)
                    self.gap_ms = inner

                yield from self.go(body, at, taken, need, ahead, must, behind)
                self.gap_ms = outer

    def take(self, name: str, at: int, taken: Taken, need: Need, then: Then) -> Iterator[Outcome]:
        due = self.due(taken, shorter(self.gap_ms, need.gap_ms)) if taken else None
        for index in range(at, self.stop):
            if due is not None and self.rows[index][0] >= due:
                break
            if any(self.fits(one, index, taken) for one in need.never + (need.not_now if index == at else ())):
                return
            for one, unless in need.stops:
                if self.fits(one, index, taken) and not any(self.fits(other, index, taken) for other in unless):
                    return
            if self.fits(name, index, taken):
                if not any(self.fits(one, index, taken) for one in need.unless):
                    yield from then(index + 1, (*taken, (name, index)), Need(Gap.STRICT, moved=True))
                if need.gap is not Gap.ANY:
                    return
            elif need.gap is Gap.STRICT:
                return
            if not taken:
                return
        if taken:
            yield Outcome("open", taken, None) if due is None else Outcome("over", taken, None, due)

    def sequence(
        self,
        parts: list[tuple[Gap, Tree]],
        at: int,
        taken: Taken,
        need: Need,
        ahead: list[str],
        must: bool,
        then: Then,
    ) -> Iterator[Outcome]:
        def behind(number: int, at: int, taken: Taken, now: Need, started: bool) -> Iterator[Outcome]:
            if number == len(parts):
                yield from then(at, taken, now._replace(moved=started))
                return
            gap, node = parts[number]
            if isinstance(node, Absent):
                if node.immediately:
                    now = now._replace(not_now=(*now.not_now, node.variable), moved=False)
                else:
                    now = now._replace(never=(*now.never, node.variable), moved=False)
                now = now._replace(silence_ms=shorter(now.silence_ms, node.within_ms))
                yield from behind(number + 1, at, taken, now, started)
                return
            following, needed = list[str](), must
            for _, other in parts[number + 1 :]:
                following += leading(other)
                if not may_be_empty(other):
                    needed = True
                    break
            else:
                following += ahead
            entry = now._replace(gap=gap if started else need.gap, moved=False)

            def on(at: int, taken: Taken, after: Need) -> Iterator[Outcome]:
                return behind(number + 1, at, taken, after, started or after.moved)

            yield from self.go(node, at, taken, entry, following, needed, on)

        yield from behind(0, at, taken, need, False)

    def repeat(
        self, tree: Repeat, at: int, taken: Taken, need: Need, ahead: list[str], must: bool, then: Then
    ) -> Iterator[Outcome]:
        inner = [*leading(tree.body), *ahead]

        def out(at: int, taken: Taken, now: Need) -> Iterator[Outcome]:
            return then(at, taken, now if now.moved else now._replace(unless=need.unless))

        def leave(at: int, taken: Taken, now: Need) -> Iterator[Outcome]:
            if tree.loop is Loop.GREEDY and not self.preferred and not 1 < tree.least == tree.most:
                now = now._replace(stops=now.stops + tuple((name, tree.until) for name in leading(tree.body)))
            return out(at, taken, now)

        def again(count: int, at: int, taken: Taken, now: Need) -> Iterator[Outcome]:
            entry = now._replace(gap=tree.gap, gap_ms=shorter(now.gap_ms, tree.gap_ms)) if now.moved else now
            stops = tuple((name, ()) for name in tree.until if count)
            if count == 0:
                entry = entry._replace(unless=tree.until)
            if count >= tree.least and tree.loop is Loop.RELUCTANT and not self.preferred:
                stops += tuple((name, ()) for name in ahead)
            entry = entry._replace(stops=entry.stops + stops, moved=False)

            def on(next_at: int, next_taken: Taken, after: Need) -> Iterator[Outcome]:
                if len(next_taken) == len(taken) and (tree.optional or count >= tree.least):
                    return iter(())  # an empty repetition leads nowhere else
                return loop(count + 1, next_at, next_taken, after._replace(moved=now.moved or after.moved))

            return self.go(tree.body, at, taken, entry, inner, must, on)

        def loop(count: int, at: int, taken: Taken, now: Need) -> Iterator[Outcome]:
            if count < tree.least:
                yield from again(count, at, taken, now)
            elif tree.most is not None and count >= tree.most:
                yield from out(at, taken, now)
            elif tree.loop is Loop.RELUCTANT and not self.preferred:
                if must:
                    yield from again(count, at, taken, now)
                    yield from leave(at, taken, now)
                else:
                    yield from out(at, taken, now)
            else:
                first, second = (leave, None) if tree.loop is Loop.RELUCTANT else (None, leave)
                if first is not None:
                    yield from first(at, taken, now)
                yield from again(count, at, taken, now)
                if second is not None:
                    yield from second(at, taken, now)

        if not tree.optional:
            yield from loop(0, at, taken, need)
        elif tree.loop is Loop.RELUCTANT and self.preferred:
            yield from leave(at, taken, need)
            yield from loop(0, at, taken, need)
        else:
            yield from loop(0, at, taken, need)
            yield from leave(at, taken, need)


def shorter(one: int | None, other: int | None) -> int | None:
    return min((ms for ms in (one, other) if ms is not None), default=None)


def leading(tree: Tree) -> list[str]:
    match tree:
        case Take(name):
            return [name]
        case Sequence(parts):
            found: list[str] = []
            for part in parts:
                found += leading(part.node)
                if not may_be_empty(part.node):
                    return found
            return found
        case Choice(options) | Permute(options, _):
            return [name for option in options for name in leading(option)]
        case Repeat() | Spaced():
            return leading(tree.body)
    return []


def may_be_empty(tree: Tree) -> bool:
    match tree:
        case Take():
            return False
        case Sequence(parts):
            return all(may_be_empty(part.node) for part in parts)
        case Choice(options):
            return any(may_be_empty(option) for option in options)
        case Permute(options, _):
            return all(may_be_empty(option) for option in options)
        case Repeat():
            return tree.optional or may_be_empty(tree.body)
        case Spaced():
            return may_be_empty(tree.body)
    return True


class Result(NamedTuple):
    """A match or a timeout: what was taken, and its time."""

    taken: Taken
    time: int


def match_all(pattern: Pattern, after: AfterMatch, rows: list[tuple[int, Any]]) -> tuple[list[Result], list[Result]]:
    """Return the matches and the timeouts of one key, whose records are in order; after the last record the time of
    every open match is over."""
    oracle = Oracle(pattern, rows)
    return _every(oracle) if after.skip is SkipTo.NO_SKIP else _one_after_another(oracle, after)


def _time(oracle: Oracle, outcome: Outcome) -> int:
    if outcome.kind != "match":
        return outcome.due
    return int(oracle.rows[outcome.taken[-1][1]][0])


def _every(oracle: Oracle) -> tuple[list[Result], list[Result]]:
    found: list[tuple[tuple[int, int, int], int, Result]] = []
    over: list[Result] = []
    for start in range(len(oracle.rows)):
        cut: dict[tuple[Taken, int], None] = {}
        for outcome in dict.fromkeys(oracle.ways(start)):
            result = Result(outcome.taken, _time(oracle, outcome))
            if outcome.kind == "match":
                assert outcome.at is not None
                found.append(((oracle.rows[outcome.at][0], 1, outcome.at), start, result))
            elif outcome.kind == "silent":
                found.append(((result.time, 0, 0), start, result))
            elif outcome.kind == "over":
                cut[outcome.taken, outcome.due] = None
        over += [Result(taken, due) for taken, due in cut]
    over.sort(key=lambda result: result.time)
    found.sort(key=lambda item: item[:2])
    return [result for _, _, result in found], over


def _one_after_another(oracle: Oracle, after: AfterMatch) -> tuple[list[Result], list[Result]]:
    found: list[Result] = []
    over: list[Result] = []
    begin = 0
    for start in range(len(oracle.rows)):
        if start < begin:
            continue
        ways = oracle.ways(start)
        best = _best(oracle, ways)
        if best is None:
            continue
        if best.kind == "open":
            break
        result = Result(best.taken, _time(oracle, best))
        if best.kind == "over":
            over.append(result)
        else:
            found.append(result)
            begin = max(start + 1, _following(best.taken, start, after))
    return found, over


def _best(oracle: Oracle, ways: list[Outcome]) -> Outcome | None:
    if oracle.preferred:
        for one in ways:
            if one.kind != "over":
                return one
        return ways[0] if ways else None
    complete = [one for one in ways if one.kind in ("match", "silent")]
    if complete:
        return min(complete, key=lambda one: _when(oracle, one))
    lasting = next((one for one in ways if one.kind == "open"), None)
    return lasting or (max(ways, key=lambda one: one.due) if ways else None)


def _when(oracle: Oracle, outcome: Outcome) -> tuple[int, int, int]:
    """What the time decides comes before the record with that time."""
    return (outcome.due, 0, 0) if outcome.at is None else (oracle.rows[outcome.at][0], 1, outcome.at)


def _following(taken: Taken, start: int, after: AfterMatch) -> int:
    if after.skip is SkipTo.NEXT:
        return start + 1
    if after.skip is SkipTo.PAST_LAST:
        return taken[-1][1] + 1
    numbers = [index for name, index in taken if name == after.variable]
    return start + 1 if not numbers else numbers[0] if after.skip is SkipTo.FIRST else numbers[-1]

"""Compile a pattern into the states of its machine.

A thread waits in a state for the next record. Where it can continue is known when the program is compiled, so a state
lists the states that follow it in order of preference, and nothing is resolved while records are processed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations
from typing import NamedTuple

from potok.topology.patterns.errors import PatternError
from potok.topology.patterns.pattern import Pattern
from potok.topology.patterns.tree import (
    Absent,
    Choice,
    End,
    Gap,
    Loop,
    Part,
    Permute,
    Repeat,
    Semantics,
    Sequence,
    Spaced,
    Start,
    Take,
    Tree,
    anchored,
    firsts_of,
    nullable,
)

ACCEPT = 0
"""The state of a thread that has matched."""

MOST_STATES = 5_000


class Guard(NamedTuple):
    """A record that satisfies `variable`, and none of `unless`, ends a thread."""

    variable: int
    unless: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """A thread waits for a record of `variable`; without one, for the end of `within` or, with `passes`, for any next
    record, or with `ends` for the end of all records.
    With `gap_ms` it waits less than that after the record that was taken before.

    `after` lists the states after the record is taken; `skipped` is the state after another record, None if that ends
    the thread. With `forks` the thread also skips a record that it takes. A record that satisfies one of `unless` is
    not taken, and not another one either.
    """

    variable: int | None
    guards: tuple[Guard, ...]
    after: tuple[int, ...]
    skipped: int | None
    forks: bool = False
    passes: bool = False
    ends: bool = False
    gap_ms: int | None = None
    unless: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """The states, and those in which a thread begins: with the first record of a key `begin_first`. `ACCEPT` among
    them is last, and means that nothing needs to be taken."""

    variables: tuple[str, ...]
    states: tuple[State, ...]
    begin: tuple[int, ...]
    begin_first: tuple[int, ...]

    @property
    def gapped(self) -> bool:
        """Whether the time limit of a thread can pass before that of its match."""
        return any(state.gap_ms is not None for state in self.states)

    @property
    def ends_absent(self) -> bool:
        return any(state.variable is None and not state.ends for state in self.states[1:])


class _Here(NamedTuple):
    """The position of a pattern being compiled: the gap before the next record, and what must not be there.

    `guards` are absences, and `soon` are those that apply to the very next record alone. `stops` ends threads that
    could have done better or may not go on; at the end of a pattern it means nothing. `taken` says that the part that
    ends here took a record, `started` that any did, and `ended` that no record may follow. The next record comes less
    than `gap_ms` after the one before and satisfies none of `unless`, and an absence at the end lasts for `silence_ms`.
    """

    gap: Gap
    guards: tuple[Guard, ...] = ()
    soon: tuple[Guard, ...] = ()
    stops: tuple[Guard, ...] = ()
    taken: bool = False
    started: bool = False
    ended: bool = False
    gap_ms: int | None = None
    silence_ms: int | None = None
    unless: tuple[int, ...] = ()

    def stopped_by(self, guards: tuple[Guard, ...]) -> _Here:
        return self._replace(stops=tuple(dict.fromkeys(self.stops + guards)))


_Then = Callable[[_Here], tuple[int, ...]]
"""Return the states of what follows a part, by the position behind it."""


class _Compiler:
    def __init__(self, pattern: Pattern) -> None:
        self._numbers = {definition.name: number for number, definition in enumerate(pattern.definitions)}
        self._ordered = pattern.semantics is Semantics.PREFERRED
        self._at_start = False
        self._gap_ms: int | None = None
        self.states: list[State] = [State(None, (), (), None)]
        self.links: dict[int, tuple[int, ...]] = {}

    def compile(self, tree: Tree, *, at_start: bool) -> tuple[int, ...]:
        self._at_start = at_start
        return self._part(tree, _Here(Gap.STRICT), (), False, self._end)

    def _end(self, here: _Here) -> tuple[int, ...]:
        if here.ended:
            return (self._add(State(None, (), (), None, ends=True)),)
        if not here.guards and not here.soon:
            return (ACCEPT,)
        if not here.guards:
            return (self._add(State(None, here.soon, (), None, passes=True)),)
        lasting = self._add(State(None, here.guards, (), len(self.states), gap_ms=here.silence_ms))
        soon = here.guards + here.soon
        return (self._add(State(None, soon, (), lasting, gap_ms=here.silence_ms)) if here.soon else lasting,)

    def _add(self, state: State) -> int:
        if len(self.states) >= MOST_STATES:
            hint = "use smaller numbers of times, or a condition that counts"
            raise PatternError(f"the pattern has more than {MOST_STATES:,} states", hint=hint)
        self.states.append(state)
        return len(self.states) - 1

    def _part(self, tree: Tree, here: _Here, follow: tuple[str, ...], must: bool, then: _Then) -> tuple[int, ...]:
        """Return the states of a part. `follow` are the variables that can come behind it, and `must` says that one of
        them does."""
        match tree:
            case Take(variable):
                return () if here.ended else (self._take(self._numbers[variable], here, then),)
            case Start():
                return then(here) if self._at_start and not here.started else ()
            case End():
                return then(here._replace(ended=True))
            case Sequence(parts):
                return self._sequence(parts, here, follow, must, then)
            case Choice(options):
                return _union([self._part(option, here, follow, must, then) for option in options])
            case Permute(options, gap):
                orders = [Sequence(tuple(Part(gap, node) for node in order)) for order in permutations(options)]
                return self._part(Choice(tuple(orders)), here, follow, must, then)
            case Repeat():
                return self._repeat(tree, here, follow, must, then)
            case Spaced():
                return self._spaced(tree, here, follow, must, then)
        raise TypeError(f"{type(tree).__name__} is not allowed here")

    def _spaced(self, tree: Spaced, here: _Here, follow: tuple[str, ...], must: bool, then: _Then) -> tuple[int, ...]:
        outer = self._gap_ms

        def leave(at: _Here) -> tuple[int, ...]:
            inner, self._gap_ms = self._gap_ms, outer
            found = then(at)
            self._gap_ms = inner
            return found

        self._gap_ms = shortest(tree.gap_ms, outer)
        found = self._part(tree.body, here, follow, must, leave)
        self._gap_ms = outer
        return found

    def _take(self, variable: int, here: _Here, then: _Then) -> int:
        gap_ms = shortest(self._gap_ms, here.gap_ms) if here.started else None
        after = then(_Here(Gap.STRICT, taken=True, started=True))
        forks, skips = here.gap is Gap.ANY, here.gap is not Gap.STRICT
        always = here.guards + here.stops
        waiting: int | None = None
        if skips:
            state = State(variable, always, after, len(self.states), forks, gap_ms=gap_ms, unless=here.unless)
            waiting = self._add(state)
            if not here.soon:
                return waiting
        soon = always + here.soon
        return self._add(State(variable, soon, after, waiting, forks, gap_ms=gap_ms, unless=here.unless))

    def _sequence(
        self, parts: tuple[Part, ...], here: _Here, follow: tuple[str, ...], must: bool, then: _Then
    ) -> tuple[int, ...]:
        known: dict[tuple[int, _Here, bool], tuple[int, ...]] = {}

        def rest(index: int, at: _Here, started: bool) -> tuple[int, ...]:
            key = index, at, started
            if key not in known:
                known[key] = behind(index, at, started)
            return known[key]

        def behind(index: int, at: _Here, started: bool) -> tuple[int, ...]:
            if index == len(parts):
                return then(at._replace(taken=started))
            part = parts[index]
            if isinstance(part.node, Absent):
                guard = (Guard(self._numbers[part.node.variable]),)
                soon, always = (guard, ()) if part.node.immediately else ((), guard)
                silence_ms = shortest(at.silence_ms, part.node.within_ms)
                absent = at._replace(guards=at.guards + always, soon=at.soon + soon, silence_ms=silence_ms)
                return rest(index + 1, absent._replace(taken=False), started)
            entry = at._replace(gap=part.gap if started else here.gap, taken=False)
            coming = Sequence(parts[index + 1 :])
            names = tuple(dict.fromkeys([*firsts_of(coming), *(follow if nullable(coming) else ())]))
            needed = must or not nullable(coming)
            return self._part(
                part.node, entry, names, needed, lambda after: rest(index + 1, after, started or after.taken)
            )

        return rest(0, here, False)

    def _repeat(self, tree: Repeat, here: _Here, follow: tuple[str, ...], must: bool, then: _Then) -> tuple[int, ...]:
        until = tuple(self._numbers[name] for name in tree.until)
        stops = tuple(Guard(number) for number in until)
        inside = tuple(self._numbers[name] for name in firsts_of(tree.body))
        keeps = tuple(Guard(number, until) for number in inside)
        ahead = tuple(Guard(self._numbers[name]) for name in follow)
        # A threshold beyond which all repetitions are alike.
        alike = tree.least if tree.most is None else tree.most
        known: dict[tuple[int, _Here], tuple[int, ...]] = {}
        behind = (*firsts_of(tree.body), *follow)

        def behind_all(at: _Here) -> tuple[int, ...]:
            return then(at if at.taken else at._replace(unless=here.unless))

        def leave(at: _Here) -> tuple[int, ...]:
            """Continue behind the repetition; if it is greedy, no longer when it could have gone on. As in Flink, an
            exact number of times is never greedy."""
            if self._ordered or tree.loop is not Loop.GREEDY or 1 < tree.least == tree.most:
                return behind_all(at)
            return behind_all(at.stopped_by(keeps))

        def again(count: int, at: _Here) -> tuple[int, ...]:
            entry = at._replace(gap=tree.gap, gap_ms=shortest(at.gap_ms, tree.gap_ms)) if at.taken else at
            if count >= tree.least and not self._ordered and tree.loop is Loop.RELUCTANT:
                entry = entry.stopped_by(ahead)
            # What has not started does not end: the first record may only not be the one that ends it.
            entry = entry.stopped_by(stops) if count else entry._replace(unless=until)
            entry = entry._replace(taken=False)

            def on(after: _Here) -> tuple[int, ...]:
                if not after.taken and (tree.optional or count >= tree.least):
                    return ()  # an empty repetition leads nowhere else
                return loop(min(count + 1, alike), after._replace(taken=at.taken or after.taken))

            return self._part(tree.body, entry, behind, must, on)

        def loop(count: int, at: _Here) -> tuple[int, ...]:
            key = count, at
            if key not in known:
                link = self._link()
                known[key] = (link,)
                self.links[-link] = decide(count, at)
            return known[key]

        def decide(count: int, at: _Here) -> tuple[int, ...]:
            if count < tree.least:
                return again(count, at)
            if tree.most is not None and count >= tree.most:
                return behind_all(at)
            if tree.loop is Loop.RELUCTANT and not self._ordered and not must:
                return behind_all(at)
            return self._prefer(tree, again(count, at), leave(at))

        if not tree.optional:
            return loop(0, here)
        return self._prefer(tree, loop(0, here), leave(here))

    def _prefer(self, tree: Repeat, more: tuple[int, ...], less: tuple[int, ...]) -> tuple[int, ...]:
        reluctant = self._ordered and tree.loop is Loop.RELUCTANT
        return _union([less, more] if reluctant else [more, less])

    def _link(self) -> int:
        """Return a negative number that stands for states that are not known yet."""
        number = len(self.links) + 1
        self.links[number] = ()
        return -number

    def resolve(self, states: tuple[int, ...]) -> tuple[int, ...]:
        """Replace links by their states, in order of preference; the first of two equal ones counts. With preference,
        nothing behind a match counts."""
        found: dict[int, None] = {}
        seen: set[int] = set()
        ahead = list(reversed(states))
        while ahead:
            state = ahead.pop()
            if state >= 0:
                found[state] = None
            elif state not in seen:
                seen.add(state)
                ahead += reversed(self.links[-state])
        ordered = list(found)
        if self._ordered and ACCEPT in found:
            del ordered[ordered.index(ACCEPT) + 1 :]
        return tuple(ordered)


def shortest(one_ms: int | None, other_ms: int | None) -> int | None:
    """Return the shorter of two times, of which each may be missing."""
    return min((ms for ms in (one_ms, other_ms) if ms is not None), default=None)


def _union(groups: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(state for group in groups for state in group))


def compile_pattern(pattern: Pattern) -> Program:
    """Compile a pattern that was checked."""
    compiler = _Compiler(pattern)
    try:
        begin = compiler.compile(pattern.tree, at_start=False)
        begin_first = compiler.compile(pattern.tree, at_start=True) if anchored(pattern.tree) else begin
    except RecursionError:
        hint = "use smaller numbers of times, or a condition that counts"
        raise PatternError("the pattern is too deep", hint=hint) from None
    states = tuple(replace(state, after=compiler.resolve(state.after)) for state in compiler.states)
    # The record that begins a match is taken or not; nothing is skipped before it.
    names = tuple(definition.name for definition in pattern.definitions)
    return Program(names, states, compiler.resolve(begin), compiler.resolve(begin_first))

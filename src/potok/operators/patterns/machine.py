"""The machine of a pattern: threads in order of preference, advanced record by record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from potok.operators.patterns.match_so_far import MatchSoFar
from potok.operators.patterns.runs import Link, Row, Run, Runs, taken
from potok.topology.patterns.output import NO_VARIABLE
from potok.topology.patterns.program import ACCEPT, Guard, Program
from potok.topology.patterns.tree import AfterMatch, Semantics, SkipTo

MOST_THREADS = 10_000
"""A match with more ways to continue ends as a dead letter."""


FEW = 8
"""So many runs of a key are advanced one by one."""


class Found(NamedTuple):
    """A match, or a partial match whose time limit has passed: its time, and when it was decided.

    `number` counts the matches of a key, from 1; it is 0 if they are not counted. With `unmatched` it is not a match
    but a record that no match contains.
    """

    link: Link
    time: int
    known_at: int
    over: bool = False
    number: int = 0
    unmatched: bool = False


class Dropped(NamedTuple):
    """A match that was given up, by the record that began it."""

    start: Row
    error: str


Advanced = list[tuple[Run, list[tuple[int, Link]], Link | None, list[Link]]]


class Machine:
    """Advances the runs of a key. What is found and what is dropped is collected until it is taken.

    `conditions` are the iterative conditions by variable; the others come as bits of each record. `as_seen` turns a
    value into what conditions see.
    """

    def __init__(
        self,
        program: Program,
        conditions: dict[int, Callable[[Any, Any], Any]],
        after: AfterMatch,
        semantics: Semantics,
        within_ms: int | None,
        max_runs: int,
        as_seen: Callable[[Any], Any],
        *,
        numbered: bool = False,
        unmatched: bool = False,
    ) -> None:
        self._as_seen = as_seen
        self._states, self._names = program.states, program.variables
        self._started = [(state, None) for state in program.begin if state != ACCEPT]
        self._started_first = [(state, None) for state in program.begin_first if state != ACCEPT]
        self._empty, self._empty_first = ACCEPT in program.begin, ACCEPT in program.begin_first
        self._numbered, self._unmatched = numbered, unmatched
        self._conditions, self._within_ms, self._max_runs = conditions, within_ms, max_runs
        self._all = after.skip is SkipTo.NO_SKIP
        self._ordered = semantics is Semantics.PREFERRED
        self._skip = after.skip
        self._skip_to = frozenset(self._names.index(name) for name in after.names)
        # Threads in one state have one future, so the first of them counts, unless their pasts are compared.
        self._gapped = program.gapped
        self._merges = not self._all and not conditions and not self._gapped
        self._known_quiet: dict[tuple[tuple[int, ...], int], bool] = {}
        self.found: list[Found] = []
        self.dropped: list[Dropped] = []

    def accept(self, runs: Runs, row: Row, bits: int, *, begin: bool = True, at_start: bool = False) -> None:
        """Advance all runs by a record, and begin one with it unless it cannot lead to a match; `at_start` says that it
        is the first one of its key. If a condition raises, nothing changes."""
        advanced: Advanced = []
        for run in self._concerned(runs, bits):
            threads, found, complete = self._step(run.threads, row, bits) if run.threads else ([], None, [])
            advanced.append((run, threads, found, complete))
        if begin:
            threads, found, complete = self._step(
                self._started_first if at_start else self._started, row, bits, first=True
            )
            if found is None and (self._empty_first if at_start else self._empty):
                found = Link(None, NO_VARIABLE, row)
            if threads or found is not None or complete or self._unmatched:
                run = Run(row, threads)
                runs.runs.append(run)
                advanced.append((run, threads, found, complete))
        for run, threads, found, complete in advanced:
            run.threads = threads
            runs.regroup(run)
            run.found = found or run.found
            if complete:
                self.found += [Found(link, link.row.time, row.time) for link in complete]
            if len(threads) > MOST_THREADS:
                self._give_up(runs, run)
        if len(runs.runs) > self._max_runs:
            self._limit(runs)
        if advanced:
            self._settle(runs, row.time, [run for run, _, _, _ in advanced])

    def _concerned(self, runs: Runs, bits: int) -> Iterable[Run]:
        """Return the runs that a record can change, by start. Of many runs, those that wait in the same states are
        tested once."""
        if len(runs.runs) <= FEW and runs.groups is None:
            return runs.runs
        groups = runs.grouped()
        found = [run for states in list(groups) if not self._quiet(states, bits) for run in groups[states].values()]
        found.sort(key=lambda run: run.start.number)
        return found

    def _quiet(self, states: tuple[int, ...], bits: int) -> bool:
        """Whether threads stay in these states, and take nothing."""
        known = self._known_quiet.get((states, bits))
        if known is None:
            known = self._known_quiet[states, bits] = all(self._waits(state, bits) for state in states)
        return known

    def _waits(self, number: int, bits: int) -> bool:
        state = self._states[number]
        if state.skipped != number or state.passes:
            return False
        tested = [guard.variable for guard in state.guards]
        tested += [] if state.variable is None else [state.variable]
        return not any(variable in self._conditions or bits >> variable & 1 for variable in tested)

    def expire(self, runs: Runs, until_ms: int) -> None:
        """End the threads whose time limit has passed: those for which all records before `until_ms` have been seen."""
        while runs.runs and (due := self.next_due(runs)) is not None and due <= until_ms:
            over = next(run for run in runs.runs if self._due(run) == due)
            self._end_threads(over, due)
            runs.regroup(over)
            self._settle(runs, due, [over])

    def _end_threads(self, run: Run, due: int) -> None:
        ended = run.threads
        if self._within_ms is None or run.start.time + self._within_ms != due:
            ended = [thread for thread in run.threads if self._thread_due(thread) == due]
        silent = [link for state, link in ended if self._lasts(state)]
        over = set(map(id, ended))
        run.threads = [thread for thread in run.threads if id(thread) not in over]
        if self._all:
            waiting = {_content(link): link for state, link in ended if self._states[state].variable is not None}
            self.found += [Found(link, due, due) for link in silent]
            self.found += [Found(link, due, due, over=True) for link in waiting.values()]
        elif silent:
            run.found, run.found_at, run.threads = silent[0], due, []
        elif run.found is None:
            run.over, run.over_at = ended[0][1], due

    def end(self, runs: Runs, now_ms: int) -> None:
        """End all runs: no record follows."""
        for run in runs.runs:
            ends = next((link for state, link in run.threads if self._states[state].ends), None)
            run.found = ends if ends is not None else run.found
            run.threads = []
            runs.regroup(run)
        self._settle(runs, now_ms, list(runs.runs))

    def _lasts(self, state: int) -> bool:
        """Whether a state waits for the end of the time."""
        return self._states[state].variable is None and not self._states[state].ends

    def next_due(self, runs: Runs) -> int | None:
        if not self._gapped:
            # Runs are in the order of their starts, and the first one has threads.
            return None if self._within_ms is None or not runs.runs else runs.runs[0].start.time + self._within_ms
        return min((due for run in runs.runs if (due := self._due(run)) is not None), default=None)

    def _due(self, run: Run) -> int | None:
        """Return when the first thread of a run is over."""
        if not run.threads:
            return None
        dues = [] if self._within_ms is None else [run.start.time + self._within_ms]
        if self._gapped:
            dues += [due for thread in run.threads if (due := self._thread_due(thread)) is not None]
        return min(dues, default=None)

    def _thread_due(self, thread: tuple[int, Link]) -> int | None:
        number, link = thread
        gap_ms = self._states[number].gap_ms
        return None if gap_ms is None else link.row.time + gap_ms

    def _step(
        self, threads: list[Any], row: Row, bits: int, *, first: bool = False
    ) -> tuple[list[tuple[int, Link]], Link | None, list[Link]]:
        """Return the threads after a record, the best match if it decides, and all matches if all count."""
        states, conditions = self._states, self._conditions
        going: list[tuple[int, Link]] = []
        complete: list[Link] = []
        for number, link in threads:
            state = states[number]
            if state.guards and any(self._stopped(guard, row, bits, link) for guard in state.guards):
                continue
            variable = state.variable
            if variable is None:
                if state.ends:
                    continue
                if not state.passes:
                    assert state.skipped is not None
                    going.append((state.skipped, link))
                elif self._all:
                    complete.append(link)
                else:
                    return (going if self._ordered else []), link, []
                continue
            fits = self._satisfies(variable, row, link) if variable in conditions else bits >> variable & 1
            if fits and not (state.unless and any(self._test(other, row, bits, link) for other in state.unless)):
                longer = Link(link, variable, row)
                for after in state.after:
                    if after != ACCEPT:
                        going.append((after, longer))
                    elif self._all:
                        complete.append(longer)
                    else:
                        return (self._distinct(going) if self._ordered else []), longer, []
            if (state.forks if fits else state.skipped is not None) and not first:
                assert state.skipped is not None
                going.append((state.skipped, link))
        return self._distinct(going), None, complete if len(complete) < 2 else _different(complete)

    def _distinct(self, threads: list[tuple[int, Link]]) -> list[tuple[int, Link]]:
        if not self._merges or len(threads) < 2:
            return threads
        seen: dict[int, tuple[int, Link]] = {}
        for thread in threads:
            seen.setdefault(thread[0], thread)
        return list(seen.values())

    def _stopped(self, guard: Guard, row: Row, bits: int, link: Link | None) -> bool:
        return self._test(guard.variable, row, bits, link) and not any(
            self._test(other, row, bits, link) for other in guard.unless
        )

    def _test(self, variable: int, row: Row, bits: int, link: Link | None) -> bool:
        return self._satisfies(variable, row, link) if variable in self._conditions else bool(bits >> variable & 1)

    def _satisfies(self, variable: int, row: Row, link: Link | None) -> bool:
        so_far = MatchSoFar(self._names, link, self._as_seen)
        return bool(self._conditions[variable](self._as_seen(row.value), so_far))

    def _give_up(self, runs: Runs, run: Run) -> None:
        text = f"the pattern has more than {MOST_THREADS:,} ways to continue from this record"
        self.dropped.append(Dropped(run.start, f"{text}; use consecutive(), greedy(), until() or within()"))
        runs.remove(run)
        runs.runs.remove(run)

    def _limit(self, runs: Runs) -> None:
        """Give up the oldest of too many runs."""
        text = f"the key has more than {self._max_runs:,} open matches, and this record began the oldest"
        while len(runs.runs) > self._max_runs:
            self.dropped.append(Dropped(runs.runs[0].start, text))
            runs.remove(runs.runs.popleft())

    def _settle(self, runs: Runs, now_ms: int, changed: list[Run]) -> None:
        """Remove runs that ended. Where matches exclude others, those that began first are decided first."""
        if not self._unmatched and any(run.failed for run in changed):
            if len(changed) == 1 and runs.runs and runs.runs[0] is changed[0]:
                runs.runs.popleft()
            else:
                runs.runs = deque(run for run in runs.runs if not run.failed)
        if self._all:
            return
        while runs.runs and not runs.runs[0].threads:
            run = runs.runs.popleft()
            if run.found is None:
                if run.over is not None:
                    self.found.append(Found(run.over, run.over_at, now_ms, over=True))
                if self._unmatched and run.start.number >= runs.covered:
                    link = Link(None, NO_VARIABLE, run.start)
                    self.found.append(Found(link, run.start.time, now_ms, unmatched=True))
                continue
            time = run.found.row.time if run.found_at is None else run.found_at
            runs.matched += self._numbered
            runs.covered = max(runs.covered, run.found.row.number + 1)
            self.found.append(Found(run.found, time, now_ms, number=runs.matched))
            target = self._target(run)
            while runs.runs and runs.runs[0].start.number < target:
                runs.remove(runs.runs.popleft())

    def _target(self, run: Run) -> int:
        """Return the number of the first record that may begin another match."""
        following = run.start.number + 1
        assert run.found is not None
        if self._skip is SkipTo.NEXT:
            return following
        if self._skip is SkipTo.PAST_LAST:
            return run.found.row.number + 1
        numbers = [row.number for variable, row in taken(run.found) if variable in self._skip_to]
        if not numbers:
            return following
        return max(following, numbers[0] if self._skip is SkipTo.FIRST else numbers[-1])


def _different(links: list[Link]) -> list[Link]:
    """Return what was taken in different ways; a pattern may lead to one result in several."""
    return list({_content(link): link for link in reversed(links)}.values())[::-1]


def _content(link: Link) -> tuple[tuple[int, int], ...]:
    return tuple((variable, row.number) for variable, row in taken(link))

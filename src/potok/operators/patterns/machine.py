"""The machine of a pattern: threads in order of preference, advanced record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from potok.operators.patterns.match_so_far import MatchSoFar
from potok.operators.patterns.open_runs import Runs
from potok.operators.patterns.run_columns import DueOf
from potok.operators.patterns.runs import Link, Row, Run, States, taken
from potok.topology.patterns.output import NO_VARIABLE
from potok.topology.patterns.program import ACCEPT, Guard, Program
from potok.topology.patterns.tree import AfterMatch, Semantics, SkipTo

MOST_THREADS = 10_000
"""A match with more ways to continue ends as a dead letter."""


class ConditionRaised(Exception):
    """An iterative condition has raised `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


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
        self.reports_over = True
        """Whether what had matched when its time was over is wanted."""
        self.found: list[Found] = []
        self.dropped: list[Dropped] = []

    def accept(self, runs: Runs, row: Row, bits: int, *, begin: bool = True, at_start: bool = False) -> None:
        """Advance all runs by a record, and begin one with it unless it cannot lead to a match; `at_start` says that it
        is the first one of its key. If a condition raises, nothing changes."""
        advanced: Advanced = []
        several: Iterable[Run] = ()
        if runs.size:
            several = runs.few() if runs.plain else runs.concerned(lambda states: self.quiet(states, bits))
        for run in several:
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
                runs.add(run)
                advanced.append((run, threads, found, complete))
        for run, threads, found, complete in advanced:
            if runs.plain:
                run.threads, run.found = threads, found or run.found
            elif found is not None or not _same(threads, run.threads):
                run.threads, run.found = threads, found or run.found
                runs.changed(run)
            if complete:
                self.found += [Found(link, link.row.time, row.time) for link in complete]
            if len(threads) > MOST_THREADS:
                self._give_up(runs, run)
        if runs.size > self._max_runs:
            self._limit(runs)
        ended = [run for run, threads, _, _ in advanced if not threads]
        if ended or self.dropped:
            self._settle(runs, row.time, ended)

    def quiet(self, states: States, bits: int) -> bool:
        """Whether threads stay in these states, and take nothing."""
        known = self._known_quiet.get((states, bits))
        if known is None:
            known = self._known_quiet[states, bits] = all(self._waits(state, bits) for state in states)
        return known

    def quiet_for(self, several: Iterable[int], states: States) -> bool:
        """Do the same for several records, by the conditions that they satisfy."""
        return all(self.quiet(states, bits) for bits in several)

    def _waits(self, number: int, bits: int) -> bool:
        state = self._states[number]
        if state.skipped != number or state.passes:
            return False
        tested = [guard.variable for guard in state.guards]
        tested += [] if state.variable is None else [state.variable]
        return not any(variable in self._conditions or bits >> variable & 1 for variable in tested)

    def expire(self, runs: Runs, until_ms: int) -> None:
        """End the threads whose time limit has passed: those for which all records before `until_ms` have been seen."""
        while (due := self.next_due(runs)) is not None and due <= until_ms:
            over = runs.first_due() if self._gapped else runs.first()
            self._end_threads(over, due)
            if self._gapped:
                runs.changed(over)
            # Otherwise it is the first one, which ends with its threads.
            if not over.threads:
                self._settle(runs, due, [over])

    def _end_threads(self, run: Run, due: int) -> None:
        ended, run.threads = run.threads, []
        if self._within_ms is None or run.start.time + self._within_ms != due:
            run.threads = [thread for thread in ended if self._thread_due(thread) != due]
            ended = [thread for thread in ended if self._thread_due(thread) == due]
        silent = [link for state, link in ended if self._lasts(state)]
        if self._all:
            waiting = {_content(link): link for state, link in ended if self._states[state].variable is not None}
            self.found += [Found(link, due, due) for link in _different(silent)]
            if self.reports_over:
                self.found += [Found(link, due, due, over=True) for link in waiting.values()]
        elif silent:
            run.found, run.found_at, run.threads = silent[0], due, []
        elif run.found is None:
            run.over, run.over_at = ended[0][1], due

    def end(self, runs: Runs, now_ms: int) -> None:
        """End all runs: no record follows."""
        open_ = runs.all()
        for run in open_:
            ends = next((link for state, link in run.threads if self._states[state].ends), None)
            run.found = ends if ends is not None else run.found
            run.threads = []
            runs.changed(run)
        self._settle(runs, now_ms, open_)

    def _lasts(self, state: int) -> bool:
        """Whether a state waits for the end of the time."""
        return self._states[state].variable is None and not self._states[state].ends

    def next_due(self, runs: Runs) -> int | None:
        if not self._gapped:
            # Runs are in the order of their starts, and the first one has threads.
            return None if self._within_ms is None or not runs.size else runs.first_time() + self._within_ms
        return runs.next_due()

    @property
    def due_of(self) -> DueOf | None:
        """What the runs need, if threads of one run end at different times."""
        return self._due if self._gapped else None

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
        try:
            return bool(self._conditions[variable](self._as_seen(row.value), so_far))
        except Exception as error:
            raise ConditionRaised(error) from error

    def _give_up(self, runs: Runs, run: Run) -> None:
        text = f"the pattern has more than {MOST_THREADS:,} ways to continue from this record"
        self.dropped.append(Dropped(run.start, f"{text}; use consecutive(), greedy(), until() or within()"))
        runs.remove(run)

    def _limit(self, runs: Runs) -> None:
        """Give up the oldest of too many runs."""
        text = f"the key has more than {self._max_runs:,} open matches, and this record began the oldest"
        while runs.size > self._max_runs:
            first = runs.first()
            self.dropped.append(Dropped(first.start, text))
            runs.remove(first)

    def _settle(self, runs: Runs, now_ms: int, ended: list[Run]) -> None:
        """Remove runs that ended. Where matches exclude others, those that began first are decided first."""
        if not self._unmatched:
            for run in ended:
                if run.failed:
                    runs.remove(run)
        if self._all:
            return
        while runs.size and not runs.first_waits():
            run = runs.first()
            runs.remove(run)
            if run.found is None:
                if run.over is not None and self.reports_over:
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
            while runs.size and runs.first_number() < target:
                runs.remove(runs.first())

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


def _same(threads: list[tuple[int, Link]], others: list[tuple[int, Link]]) -> bool:
    if threads is others:
        return True
    return len(threads) == len(others) and all(
        one[0] == two[0] and one[1] is two[1] for one, two in zip(threads, others, strict=True)
    )


def _different(links: list[Link]) -> list[Link]:
    """Return what was taken in different ways; a pattern may lead to one result in several."""
    return list({_content(link): link for link in reversed(links)}.values())[::-1]


def _content(link: Link) -> tuple[tuple[int, int], ...]:
    return tuple((variable, row.number) for variable, row in taken(link))

"""The open matches of one key, and the cell that they are kept in.

What a thread has taken is a chain of links, each a record under a variable, so that threads share what they have in
common. A cell holds each link and each record once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple, Optional

from potok.state.codec import dump_state, load_state
from potok.topology.patterns.output import NO_VARIABLE


def runs_of(step: str) -> str:
    """Return the table of the open matches of a step."""
    return f"{step}/runs"


class Row(NamedTuple):
    """A record of a key: its number among the records of the key, its time, its value, and its position."""

    number: int
    time: int
    value: Any
    topic: str
    partition: int
    offset: int


class Link(NamedTuple):
    """A record that was taken, after others; with `NO_VARIABLE`, one that was not taken, alone."""

    before: Optional[Link]  # noqa: UP045 - evaluated by NamedTuple
    variable: int
    row: Row


Thread = tuple[int, Link | None]
"""A state, and what was taken so far."""


@dataclass(slots=True, eq=False)
class Run:
    """The threads that began with one record, in order of preference, and the best match among those that ended.

    `found_at` is the time of a match that an absence completed. `over` is what had matched when the time of the last
    thread was over, at `over_at`; it counts if there is no match.
    """

    start: Row
    threads: list[tuple[int, Link]]
    found: Link | None = None
    found_at: int | None = None
    over: Link | None = None
    over_at: int = 0
    states: tuple[int, ...] = ()
    """Those of its threads, if the runs are grouped by them."""

    @property
    def failed(self) -> bool:
        """Whether it cannot lead to a match."""
        return not self.threads and self.found is None and self.over is None


Groups = dict[tuple[int, ...], dict[int, Run]]
"""The runs by the states of their threads, then by the number of their first record."""


@dataclass(slots=True)
class Runs:
    """The cell of a key: when to visit it next, how many records it has seen since the cell exists, its runs by start,
    how many matches were counted, and the number of the first record that no match contains."""

    due: int | None = None
    count: int = 0
    runs: deque[Run] = field(default_factory=deque)
    matched: int = 0
    covered: int = 0
    groups: Groups | None = None
    """Set if there are many."""

    def grouped(self) -> Groups:
        if self.groups is None:
            self.groups = {}
            for run in self.runs:
                run.states = states = tuple([state for state, _ in run.threads])
                if states:
                    self.groups.setdefault(states, {})[run.start.number] = run
        return self.groups

    def regroup(self, run: Run) -> None:
        """Put a run under the states of its threads."""
        if self.groups is not None:
            self.remove(run)
            run.states = tuple([state for state, _ in run.threads])
            if run.states:
                self.groups.setdefault(run.states, {})[run.start.number] = run

    def remove(self, run: Run) -> None:
        """Forget the states of a run."""
        if self.groups is not None and run.states:
            members = self.groups[run.states]
            del members[run.start.number]
            if not members:
                del self.groups[run.states]
            run.states = ()

    @classmethod
    def load(cls, data: bytes | None) -> Runs:
        if data is None:
            return cls()
        due, count, matched, covered, places, kept_rows, kept_links, kept_runs, ended = load_state(data)
        *columns, at, offsets = kept_rows
        topics, partitions = [[places[one][part] for one in at] for part in (0, 1)]
        rows = list(map(Row, *columns, topics, partitions, offsets))
        befores, variables, rows_of_links = kept_links
        links: list[Link] = []
        for before, variable, row in zip(befores, variables, rows_of_links, strict=True):
            links.append(Link(None if before < 0 else links[before], variable, rows[row]))
        starts, lengths, states, ways = kept_runs
        threads = list(zip(states, [links[way] for way in ways], strict=True))
        ends = list(accumulate(lengths))
        runs = [
            Run(rows[start], threads[end - length : end])
            for start, length, end in zip(starts, lengths, ends, strict=True)
        ]
        for index, found, found_at, over, over_at in ended:
            run = runs[index]
            run.found, run.found_at = None if found < 0 else links[found], found_at
            run.over, run.over_at = None if over < 0 else links[over], over_at
        return cls(due, count, deque(runs), matched, covered)

    def dump(self) -> bytes | None:
        """Return the cell; None without an open match, if none were counted. It is made of columns: of many runs, those
        are packed several times as fast as a list for each.
        """
        if not self.runs and not self.matched:
            return None
        links = self._links()
        ways = {id(link): way for way, link in enumerate(links)}
        befores, variables, taken_rows = map(list, zip(*links, strict=True)) if links else ([], [], [])
        first = {row[0]: row for row in taken_rows} | {run.start.number: run.start for run in self.runs}
        rows = {number: row for row, number in enumerate(first)}
        columns = map(list, zip(*first.values(), strict=True)) if first else [[] for _ in Row._fields]
        numbers, times, values, topics, partitions, offsets = columns
        places = {place: number for number, place in enumerate(dict.fromkeys(zip(topics, partitions, strict=True)))}
        at = [places[place] for place in zip(topics, partitions, strict=True)] if len(places) > 1 else [0] * len(rows)
        kept_rows = [numbers, times, values, at, offsets]
        kept_links = [
            [-1 if before is None else ways[id(before)] for before in befores],
            variables,
            [rows[row[0]] for row in taken_rows],
        ]
        threads = [thread for run in self.runs for thread in run.threads]
        kept_runs = [
            [rows[run.start.number] for run in self.runs],
            [len(run.threads) for run in self.runs],
            [state for state, _ in threads],
            [ways[id(link)] for _, link in threads],
        ]
        ended = [
            [
                index,
                -1 if run.found is None else ways[id(run.found)],
                run.found_at,
                -1 if run.over is None else ways[id(run.over)],
                run.over_at,
            ]
            for index, run in enumerate(self.runs)
            if run.found is not None or run.over is not None
        ]
        kept_places = [list(place) for place in places]
        state = self.due, self.count, self.matched, self.covered
        return dump_state((*state, kept_places, kept_rows, kept_links, kept_runs, ended))

    def _links(self) -> list[Link]:
        """Return all links, each once and behind the one before it."""
        found: dict[int, Link] = {}
        for run in self.runs:
            for _, link in run.threads:
                if id(link) not in found:
                    _add_chain(link, found)
            for ended in (run.found, run.over):
                if ended is not None:
                    _add_chain(ended, found)
        return list(found.values())


def _add_chain(link: Link, found: dict[int, Link]) -> None:
    """Add a link by its identity, and before it those that lead to it."""
    if link.before is None:
        found.setdefault(id(link), link)
        return
    chain: list[Link] = []
    one: Link | None = link
    while one is not None and id(one) not in found:
        chain.append(one)
        one = one.before
    for part in reversed(chain):
        found[id(part)] = part


def taken(link: Link | None) -> list[tuple[int, Row]]:
    """Return what was taken, in order."""
    found: list[tuple[int, Row]] = []
    while link is not None and link.variable != NO_VARIABLE:
        found.append((link.variable, link.row))
        link = link.before
    found.reverse()
    return found

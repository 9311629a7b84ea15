"""The open matches of one key, and the cell that they are kept in.

What a thread has taken is a chain of links, each a record under a variable, so that threads share what they have in
common. A cell holds each link and each record once.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
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
        """Whether nothing comes of it."""
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
                self.regroup(run)
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
        due, count, kept_rows, kept_links, kept_runs, matched, covered = load_state(data)
        rows = [Row(*row) for row in kept_rows]
        links: list[Link] = []
        for before, variable, row in kept_links:
            links.append(Link(None if before < 0 else links[before], variable, rows[row]))
        runs = [
            Run(
                rows[start],
                [(state, links[link]) for state, link in threads],
                None if found < 0 else links[found],
                found_at,
                None if over < 0 else links[over],
                over_at,
            )
            for start, threads, found, found_at, over, over_at in kept_runs
        ]
        return cls(due, count, deque(runs), matched, covered)

    def dump(self) -> bytes | None:
        """Return the cell; None without an open match, if none were counted."""
        if not self.runs and not self.matched:
            return None
        rows: dict[int, int] = {}
        links: dict[int, int] = {}
        kept_rows: list[list[Any]] = []
        kept_links: list[list[int]] = []

        def keep_row(row: Row) -> int:
            if row.number not in rows:
                rows[row.number] = len(kept_rows)
                kept_rows.append(list(row))
            return rows[row.number]

        def keep(link: Link) -> int:
            chain: list[Link] = []
            one: Link | None = link
            while one is not None and id(one) not in links:
                chain.append(one)
                one = one.before
            for part in reversed(chain):
                before = -1 if part.before is None else links[id(part.before)]
                links[id(part)] = len(kept_links)
                kept_links.append([before, part.variable, keep_row(part.row)])
            return links[id(link)]

        runs = [
            [
                keep_row(run.start),
                [[state, keep(link)] for state, link in run.threads],
                -1 if run.found is None else keep(run.found),
                run.found_at,
                -1 if run.over is None else keep(run.over),
                run.over_at,
            ]
            for run in self.runs
        ]
        return dump_state((self.due, self.count, kept_rows, kept_links, runs, self.matched, self.covered))


def taken(link: Link | None) -> list[tuple[int, Row]]:
    """Return what was taken, in order."""
    found: list[tuple[int, Row]] = []
    while link is not None and link.variable != NO_VARIABLE:
        found.append((link.variable, link.row))
        link = link.before
    found.reverse()
    return found

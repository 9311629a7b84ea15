"""An open match of a key: what its threads have taken, and where they wait.

What a thread has taken is a chain of links, each a record under a variable, so that threads share what they have in
common.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from potok.topology.patterns.output import NO_VARIABLE


def runs_of(step: str) -> str:
    """Return the table of the open matches of a step."""
    return f"{step}/runs"


def segments_of(runs: str) -> str:
    """Return the table of segments next to a table of open matches."""
    return f"{runs}/segments"


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

States = tuple[int, ...]
"""The states of threads."""


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
    states: States = ()
    """Those of its threads, if the runs are grouped by them."""
    due: int | None = None
    """When its first thread is over, if the runs are ordered by that."""
    home: int | None = None
    """The number of the segment that holds it; None once it has ended. It is no reference: a circle of them would be
    freed late."""

    @property
    def failed(self) -> bool:
        """Whether it cannot lead to a match."""
        return not self.threads and self.found is None and self.over is None


@dataclass(slots=True, eq=False)
class Segment:
    """Consecutive runs in a cell of their own. Until it is read, these describe the runs in it: `size` of them are
    open, of which a record with the number `first` began the first one at `first_time`; the first thread is over at
    `due`; all threads wait in `states`; and with `idle`, some runs have no thread.
    """

    number: int
    runs: dict[int, Run] | None = None
    """By the number of the record that began a run; None until the cell is read."""
    size: int = 0
    first: int = 0
    first_time: int = 0
    due: int | None = None
    states: States = ()
    idle: bool = False
    stored: bytes | None = field(default=None, repr=False)
    """The cell before this batch, once it is read."""
    changed: bool = False
    """Whether the cell has to be written. Runs that ended at the front do not need that."""


def taken(link: Link | None) -> list[tuple[int, Row]]:
    """Return what was taken, in order."""
    found: list[tuple[int, Row]] = []
    while link is not None and link.variable != NO_VARIABLE:
        found.append((link.variable, link.row))
        link = link.before
    found.reverse()
    return found

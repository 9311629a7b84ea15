"""What could not be computed of a record and is null instead, noted on the way, so that somebody hears of it.

Computations are called deep inside of a step, and know rows, not records. They note rows here; whoever called them with
the columns of some records says where these are; the task takes all of it when it is done. A thread has notes of its
own. Where nothing fails, nobody pays for it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

MOST = 20
"""So many failures of one expression are told one by one; the others are counted."""

LONGEST = 500
"""So much of a message is kept."""

NOWHERE = (-1, -1)
"""The position of what no single record stands for."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An expression that failed for a record, whose position is a lane of the batch and an offset."""

    expression: str
    message: str
    lane: int
    offset: int


class _Notes(threading.local):
    def __init__(self) -> None:
        self.muted = False
        self.clear()

    def clear(self) -> None:
        self.counts: Counter[str] = Counter()
        self.told: list[Failure] = []
        self.open: dict[str, dict[int, str]] = {}


_notes = _Notes()


def note(expression: str, reasons: Mapping[int, str]) -> None:
    """Note the rows for which an expression failed, each with the reason. What a row is noted for twice, because two
    columns ask for the same, counts once."""
    if not _notes.muted:
        _notes.open.setdefault(expression, {}).update(reasons)


@contextmanager
def muted(*, when: bool) -> Iterator[None]:
    """Note nothing meanwhile: what is computed again failed, and was noted, when it was computed first."""
    before, _notes.muted = _notes.muted, when or _notes.muted
    try:
        yield
    finally:
        _notes.muted = before


def place(position: Callable[[int], tuple[int, int]]) -> None:
    """Say where the records are whose rows were noted since this was last called."""
    if not _notes.open:
        return
    noted, _notes.open = _notes.open, {}
    for expression, reasons in noted.items():
        room = max(MOST - _notes.counts[expression], 0)
        _notes.counts[expression] += len(reasons)
        for row in sorted(reasons)[:room] if room else ():
            _notes.told.append(Failure(expression, reasons[row][:LONGEST], *position(row)))


def taken() -> tuple[Counter[str], list[Failure]]:
    """How often each expression failed, and the first failures of each; there are no notes after it."""
    place(lambda _: NOWHERE)
    found = _notes.counts, _notes.told
    _notes.clear()
    return found


def first_of_each(failures: Iterable[Failure]) -> list[Failure]:
    """The first failures of each expression, out of those of several tasks."""
    seen: Counter[str] = Counter()
    found = []
    for failure in failures:
        seen[failure.expression] += 1
        if seen[failure.expression] <= MOST:
            found.append(failure)
    return found

"""Expressions that could not be computed for a record and are null instead.

Computations know rows, not records: they add the rows that failed to the `RowFailures` they receive, which
`evaluate` returns with its result. The caller knows the positions of the records and adds them to the
`FailureLog` of its task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

MOST = 20
"""How many failures of one expression are reported individually; the others are counted."""

LONGEST = 500
"""The maximum length of a stored message."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An expression that failed for a record, whose position is an input partition of the batch and an offset."""

    expression: str
    message: str
    input_partition: int
    offset: int


RowFailures = dict[str, dict[int, str]]
"""The rows for which expressions failed: by the text of the expression and the number of the row, why."""


def add_rows(failures: RowFailures, expression: str, reasons: Mapping[int, str]) -> None:
    """Add the rows for which an expression failed. A row that two columns use counts once."""
    failures.setdefault(expression, {}).update(reasons)


class FailureLog:
    """The failures of a task: how often each expression failed, and the first failures of each."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: list[Failure] = []

    def add(self, failures: RowFailures, position: Callable[[int], tuple[int, int]]) -> None:
        """Add the failures of some rows; `position` returns the position of the record of a row."""
        for expression, reasons in failures.items():
            room = max(MOST - self.counts[expression], 0)
            self.counts[expression] += len(reasons)
            for row in sorted(reasons)[:room] if room else ():
                self.first.append(Failure(expression, reasons[row][:LONGEST], *position(row)))


def first_of_each(failures: Iterable[Failure]) -> list[Failure]:
    """Return the first failures of each expression among those of several tasks."""
    seen: Counter[str] = Counter()
    found = []
    for failure in failures:
        seen[failure.expression] += 1
        if seen[failure.expression] <= MOST:
            found.append(failure)
    return found

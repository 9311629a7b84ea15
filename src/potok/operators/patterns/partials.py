"""Show the open matches of a pattern as the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from potok.operators.cells.cell_codec import CellCodec
from potok.operators.patterns.open_runs import Runs, segment_numbers
from potok.operators.patterns.runs import Link, Run, Segment, taken
from potok.operators.patterns.stored_runs import segment_key
from potok.state.codec import dump_state, load_state


def partials_of(step: str) -> str:
    """Return the name of the table of the partial matches of a step."""
    return f"{step}.partials"


def joined(key: bytes, head: bytes, get: Callable[[bytes], bytes | None]) -> bytes:
    """Return the head cell of a key with its segments, as `PartialCells` decodes them; `get` reads a segment."""
    return dump_state((head, [get(segment_key(key, number)) for number in segment_numbers(head)]))


class PartialCells(CellCodec):
    """Decode the cells of a key to the list of its partial matches, the oldest first: when each began, how many ways it
    has to continue, and what the preferred one has taken.

    `names` are the variables of the pattern; one without a name is not shown.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self.value = lambda data: self._render(_runs(data))

    def decode(self, cells: Sequence[bytes]) -> tuple[list[int], list[Any]]:
        loaded = list(map(_runs, cells))
        return [max(map(_changed_at, runs), default=0) for runs in loaded], list(map(self._render, loaded))

    def _render(self, runs: list[Run]) -> list[dict[str, Any]] | None:
        found = [
            {"began_at": run.start.time, "ways": len(run.threads), "taken": self._taken(run.threads[0][1])}
            for run in runs
            if run.threads
        ]
        return found or None

    def _taken(self, link: Link | None) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {name: [] for name in self._names if name}
        for variable, row in taken(link):
            if self._names[variable]:
                found[self._names[variable]].append(row.value)
        return found


def _runs(data: bytes) -> list[Run]:
    head, cells = load_state(data)

    def fetch(runs: Runs, segments: list[Segment]) -> None:
        for segment, cell in zip(segments, cells, strict=True):
            runs.supply(segment, cell)

    return Runs.load(head, fetch=fetch).all()


def _changed_at(run: Run) -> int:
    """Return the time of the last record that a run has taken."""
    return max((link.row.time for _, link in run.threads if link is not None), default=run.start.time)

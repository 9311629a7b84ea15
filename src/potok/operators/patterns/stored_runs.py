"""Read and write the cells of open matches: the heads of keys, and the segments of keys with many of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from potok.operators.patterns.open_runs import Runs
from potok.operators.patterns.run_columns import DueOf
from potok.operators.patterns.runs import Segment, runs_of, segments_of
from potok.state.cell import reading_cells
from potok.state.session import StateSession

NUMBER = 8
"""The bytes of the number of a segment, behind the key."""

_Cells = list[tuple[bytes, bytes | None, bytes | None]]


def segment_key(key: bytes, number: int) -> bytes:
    return key + number.to_bytes(NUMBER, "big")


class StoredRuns:
    """The open matches of a step on one shard. What is put is written at once."""

    def __init__(self, step: str, session: StateSession) -> None:
        self._heads = runs_of(step)
        self._segments = segments_of(self._heads)
        self.tables = [self._heads, self._segments]
        self._session = session
        self._head_cells: _Cells = []
        self._segment_cells: _Cells = []

    def heads(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return self._session.read(self._heads, keys)

    def load(self, keys: Sequence[bytes], heads: Sequence[bytes | None], due_of: DueOf | None) -> list[Runs]:
        """Return the open matches of keys, given their heads; segments are read when they are needed."""
        with reading_cells(self._heads):
            return [
                Runs(due_of=due_of) if data is None else Runs.load(data, fetch=partial(self._fetch, key), due_of=due_of)
                for key, data in zip(keys, heads, strict=True)
            ]

    def _fetch(self, key: bytes, runs: Runs, segments: list[Segment]) -> None:
        self.supply([(key, runs, segment) for segment in segments])

    def supply(self, wanted: Sequence[tuple[bytes, Runs, Segment]]) -> None:
        """Read segments of several keys at once."""
        if wanted:
            cells = self._session.read(self._segments, [segment_key(key, one.number) for key, _, one in wanted])
            with reading_cells(self._segments):
                for (_, runs, segment), data in zip(wanted, cells, strict=True):
                    runs.supply(segment, data)

    def put(self, key: bytes, runs: Runs, before: bytes | None) -> None:
        """Write the open matches of a key, as far as they have changed."""
        after = runs.dump()
        if after != before:
            self._head_cells.append((key, after, before))
        for number, data, stored in runs.segment_cells():
            self._segment_cells.append((segment_key(key, number), data, stored))

    def write(self) -> None:
        if self._head_cells:
            self._session.write(self._heads, self._head_cells)
        if self._segment_cells:
            self._session.write(self._segments, self._segment_cells)
        self._head_cells, self._segment_cells = [], []

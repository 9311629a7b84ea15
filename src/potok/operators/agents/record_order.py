"""The records of a batch in order: the input and the row of each, by its number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from potok.operators.core.call import python_rows
from potok.operators.core.chunk import Chunk, Ints, gathered

PIECE = 512
"""How many records are converted to objects at a time: few enough to stay in a core's cache until they are used."""


@dataclass(slots=True)
class Records:
    """The records of one upstream, as lists."""

    chunk: Chunk
    keys: list[Any]
    times: list[int]
    stream_times: list[int]

    @staticmethod
    def of(chunks: list[Chunk]) -> Records | None:
        if not chunks:
            return None
        chunk = gathered(chunks)
        return Records(chunk, python_rows(chunk.key), chunk.timestamp.tolist(), chunk.stream_time.tolist())


@dataclass(frozen=True, slots=True)
class Run:
    """Adjacent records of one upstream: the number of the first, and their rows from `start` to before `stop`."""

    port: int
    number: int
    start: int
    stop: int


class RecordLocations:
    """The upstream and the row of each record, by their positions; one that arrives by several, by these."""

    def __init__(self, records: Sequence[Records | None]) -> None:
        there = [(port, found.chunk) for port, found in enumerate(records) if found is not None]
        self.ports: Ints = np.concatenate([np.full(len(chunk), port, np.int64) for port, chunk in there] or [_NONE])
        self.rows: Ints = np.concatenate([np.arange(len(chunk)) for _, chunk in there] or [_NONE])
        if len(there) > 1:
            input_partitions = np.concatenate([chunk.input_partition for _, chunk in there])
            offsets = np.concatenate([chunk.offset for _, chunk in there])
            order = np.lexsort((self.ports, offsets, input_partitions))
            self.ports, self.rows = self.ports[order], self.rows[order]
        apart = (np.diff(self.ports) != 0) | (np.diff(self.rows) != 1)
        self._bounds = [*(np.flatnonzero(apart) + 1).tolist(), len(self.ports)]

    def __len__(self) -> int:
        return len(self.ports)

    def __getitem__(self, number: int) -> tuple[int, int]:
        return int(self.ports[number]), int(self.rows[number])

    def runs(self, first: int) -> Iterator[Run]:
        """Yield all records in runs of adjacent ones; the first ones end with their own run."""
        number = 0
        for bound in self._bounds:
            while number < bound:
                stop = min(bound, first if number < first else number + PIECE)
                port, row = self[number]
                yield Run(port, number, row, row + stop - number)
                number = stop


_NONE: Ints = np.empty(0, np.int64)

"""Windows that are over: found by an index of cells, by the end of the window, and deleted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from potok.kernels.chunk import Ints
from potok.kernels.windows import time_bytes, time_of
from potok.state.session import StateSession
from potok.topology.nodes import FixedWindow

NEVER = -(1 << 62)
"""The clock before any record was seen."""


def index_of(table: str) -> str:
    return f"{table}/by_end"


class Expiry:
    """Deletes the windows of a table once the closing clock has passed their end and retention."""

    def __init__(self, table: str, window: FixedWindow, session: StateSession, clock_ms: int) -> None:
        self._table, self._window, self._session = table, window, session
        self._bound_ms = clock_ms - window.retention_ms

    def opened(self, cell_keys: Sequence[bytes], starts: Ints, existed: npt.NDArray[np.bool_]) -> None:
        """Index the windows that this batch opened."""
        rows = np.flatnonzero(~existed)
        if len(rows):
            ends = time_bytes(starts[rows] + self._window.size_ms)
            entries = [end + cell_keys[row] for end, row in zip(ends, rows.tolist(), strict=True)]
            self._session.mark(index_of(self._table), entries)

    def next_due(self) -> int | None:
        first = self._session.first_key(index_of(self._table))
        return None if first is None else time_of(first[:8]) + self._window.retention_ms

    def closed(self) -> list[bytes]:
        """The cells of windows that are over."""
        if self._bound_ms <= NEVER:
            return []
        stop = time_bytes(np.array([self._bound_ms + 1], np.int64))[0]
        return [key[8:] for key in self._session.keys(index_of(self._table), stop)]

    def forget(self, cell_keys: Sequence[bytes]) -> None:
        """Take windows out of the index; their cells are the caller's to delete."""
        ends = time_bytes(np.array([time_of(key[-8:]) + self._window.size_ms for key in cell_keys], np.int64))
        index = [(end + key, None, b"") for end, key in zip(ends, cell_keys, strict=True)]
        self._session.write(index_of(self._table), index)

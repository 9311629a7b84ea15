"""Expired windows: all that end at or before the horizon, an instant that each shard stores in one cell.

The cells of windows are sorted by their start, then by their key, so expired windows are the first of their table: no
index is needed, and dropping them means moving the horizon. Their cells are deleted in a later batch, when the
horizon that passed them is committed: no attempt reads them again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from potok.operators.windows.windows import time_bytes, time_of
from potok.state.session import StateSession
from potok.topology.nodes import FixedWindow

NEVER = -(1 << 62)
"""The watermark before any record was seen."""

HORIZON = b"horizon"


def windows_of(table: str) -> str:
    """Return the table that holds the windows."""
    return f"{table}/windows"


def horizon_of(table: str) -> str:
    """Return the table that holds the horizon, under the key HORIZON."""
    return f"{table}/horizon"


def index_of(table: str) -> str:
    """Return the index by end of windows of variable length."""
    return f"{table}/by_end"


class Expiry:
    """Drop the windows of a table once the watermark has passed their end and retention."""

    def __init__(self, table: str, window: FixedWindow, session: StateSession, watermark_ms: int) -> None:
        self.cells = windows_of(table)
        self._horizon, self._window, self._session = horizon_of(table), window, session
        self._before = session.read(self._horizon, [HORIZON])[0]
        self._passed_ms = NEVER if self._before is None else time_of(self._before)
        self._bound_ms = max(self._passed_ms, watermark_ms - window.retention_ms)

    def next_due(self) -> int | None:
        first = self._session.first_key(self.cells, self._first_after(self._bound_ms))
        return None if first is None else time_of(first[:8]) + self._window.size_ms + self._window.retention_ms

    @property
    def moves(self) -> bool:
        return self._bound_ms > self._passed_ms

    def closed(self, written: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """Return the keys and values of the windows that this batch drops, including those it has written: results of
        a step that closes windows may be behind the watermark.
        """
        first, stop = self._span
        rows = dict(self._session.rows_between(self.cells, [(first, stop)])[0])
        return [*(rows | {key: data for key, data in written.items() if first <= key < stop}).items()]

    def closed_fixed(
        self, written: Sequence[bytes], values: npt.NDArray[Any] | None, payload: np.dtype[Any]
    ) -> tuple[list[bytes], npt.NDArray[Any]]:
        """The same for cells of fixed width; those that were written are in order."""
        first, stop = self._span
        keys, before = self._session.range_fixed(self.cells, first, stop, payload)
        low, high = bisect_left(written, first), bisect_left(written, stop)
        if values is None or low == high:
            return keys, before
        rewritten = set(written[low:high])
        rest = [row for row, key in enumerate(keys) if key not in rewritten]
        return [*(keys[row] for row in rest), *written[low:high]], np.concatenate([before[rest], values[low:high]])

    @property
    def _span(self) -> tuple[bytes, bytes]:
        return self._first_after(self._passed_ms), self._first_after(self._bound_ms)

    def _first_after(self, horizon_ms: int) -> bytes:
        """Return the least key of a window that ends after an instant."""
        return time_bytes(np.array([horizon_ms - self._window.size_ms + 1], np.int64))[0]

    def settle(self) -> None:
        """Move the horizon, and remove what it had passed before this batch."""
        if self.moves:
            reached = time_bytes(np.array([self._bound_ms], np.int64))[0]
            self._session.write(self._horizon, [(HORIZON, reached, self._before)])
        if self._before is not None:
            self._session.discard_below(self.cells, self._first_after(self._passed_ms))

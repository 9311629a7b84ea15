"""Windows in cells: how the key of a row encodes its window, and windows that may still change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from potok.operators.windows.expiry import HORIZON, horizon_of, windows_of
from potok.operators.windows.keyed_windows import window_cells
from potok.operators.windows.session_columns import OpenCells
from potok.operators.windows.windows import WindowKeys, time_key, time_of
from potok.snapshots.snapshot import Snapshot
from potok.state.cell import reading_cells
from potok.state.store import after_prefix
from potok.topology.aggregations import AggregatePlan
from potok.topology.nodes import Session, Sliding, Window

Cell = tuple[bytes, bytes]
"""Key and value, as returned by a scan."""


def window_kind(window: Window | None) -> str:
    """Return the kind of a window: `fixed` and `sliding` ones are identified by their start, a `session` also has an
    end."""
    if window is None:
        return ""
    return "session" if isinstance(window, Session) else "sliding" if isinstance(window, Sliding) else "fixed"


class LiveWindows:
    """The windows of a table that are ordered by start; those before its horizon are closed."""

    def __init__(self, table: str, size_ms: int) -> None:
        self._table, self._size_ms = table, size_ms

    def scan(self, snapshot: Snapshot) -> Iterator[Cell]:
        for shard in range(snapshot.shards):
            yield from snapshot.scan(windows_of(self._table), self.first(snapshot, shard), shard=shard)

    def get(self, snapshot: Snapshot, shard: int, cell_key: bytes) -> bytes | None:
        return (
            snapshot.get(windows_of(self._table), shard, cell_key) if cell_key >= self.first(snapshot, shard) else None
        )

    def of_key(self, snapshot: Snapshot, shard: int, inner: bytes) -> Iterator[Cell]:
        """Yield the windows of one key, by a lookup in each existing window."""
        start: bytes | None = self.first(snapshot, shard)
        while start is not None:
            found = next(snapshot.scan(windows_of(self._table), start, shard=shard), None)
            if found is None:
                return
            window = found[0][:8]
            data = snapshot.get(windows_of(self._table), shard, window + inner)
            if data is not None:
                yield window + inner, data
            start = after_prefix(window)

    def first(self, snapshot: Snapshot, shard: int) -> bytes:
        """Return the least key of a window that is not closed."""
        horizon = snapshot.get(horizon_of(self._table), shard, HORIZON)
        return b"" if horizon is None else time_key(time_of(horizon) - self._size_ms + 1)


class OpenReader:
    """Converts the cell with all open windows of a key into the cells that these windows have once closed."""

    def __init__(self, table: str, keys: WindowKeys, plan: AggregatePlan | None) -> None:
        self._table, self._keys = table, keys
        self._open = OpenCells(plan) if plan is not None else None

    def cells(self, inner: bytes, data: bytes | None) -> list[Cell]:
        if data is None:
            return []
        with reading_cells(self._table):
            windows = window_cells(data) if self._open is None else self._columns(self._open, data)
            return [(self._keys.cell_key(inner, *bounds), cell) for bounds, cell in windows]

    def _columns(self, cells: OpenCells, data: bytes) -> list[tuple[tuple[int, int], bytes]]:
        sessions, _, _ = cells.decode([data])
        rows: np.ndarray[Any, Any] = cells.rows(sessions)
        bounds = zip(sessions.start.tolist(), sessions.end.tolist(), strict=True)
        return [(both, row.tobytes()) for both, row in zip(bounds, rows, strict=True)]

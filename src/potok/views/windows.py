"""Windows in cells: how the key of a row tells its window, and the windows that may still change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from potok.kernels.expiry import HORIZON, horizon_of, windows_of
from potok.kernels.session_columns import OpenCells
from potok.state.codec import load_state
from potok.state.misfit import reading_cells
from potok.state.store import after_prefix
from potok.topology.aggregations import AggregatePlan
from potok.topology.nodes import Session, Sliding, Window
from potok.views.cut import Cut

_BIAS = 1 << 63

Cell = tuple[bytes, bytes]
"""Key and value, as a scan gives them."""


def window_kind(window: Window | None) -> str:
    """`fixed` windows are told by their start, and so are `sliding` ones; a `session` has an end of its own."""
    if window is None:
        return ""
    return "session" if isinstance(window, Session) else "sliding" if isinstance(window, Sliding) else "fixed"


def time_key(time_ms: int) -> bytes:
    """Encode an instant as bytes in sort order, clamped to 64 bits."""
    return min(max(time_ms + _BIAS, 0), 2 * _BIAS - 1).to_bytes(8, "big")


def key_time(data: bytes) -> int:
    return int.from_bytes(data, "big") - _BIAS


@dataclass(frozen=True, slots=True)
class WindowKeys:
    """The keys of cells: the canonical key, then the start of the window and, for a session, its end; or, `by_start`,
    the start and then the key."""

    kind: str
    size_ms: int
    by_start: bool = False

    @property
    def width(self) -> int:
        """How many bytes at the end of a cell's key tell the window."""
        return 16 if self.kind == "session" else 8

    def inner(self, cell_key: bytes) -> bytes:
        return cell_key[8:] if self.by_start else cell_key[: -self.width]

    def bounds(self, cell_key: bytes) -> tuple[int, int]:
        if self.kind == "session":
            return key_time(cell_key[-16:-8]), key_time(cell_key[-8:])
        start = key_time(cell_key[:8] if self.by_start else cell_key[-8:])
        return start, start + self.size_ms

    def cell_key(self, inner: bytes, start_ms: int, end_ms: int) -> bytes:
        if self.by_start:
            return time_key(start_ms) + inner
        return inner + time_key(start_ms) + (time_key(end_ms) if self.kind == "session" else b"")

    def holds(self, bounds: tuple[int, int], at_ms: int) -> bool:
        """Whether an instant falls into a window; the last one of a fixed window does not belong to it."""
        start, end = bounds
        return start <= at_ms < end if self.kind == "fixed" else start <= at_ms <= end


class LiveWindows:
    """The windows of a table that stand by their start; those that its horizon has passed are over."""

    def __init__(self, table: str, size_ms: int) -> None:
        self._table, self._size_ms = table, size_ms

    def scan(self, cut: Cut) -> Iterator[Cell]:
        for shard in range(cut.shards):
            yield from cut.scan(windows_of(self._table), self._first(cut, shard), shard=shard)

    def get(self, cut: Cut, shard: int, cell_key: bytes) -> bytes | None:
        return cut.get(windows_of(self._table), shard, cell_key) if cell_key >= self._first(cut, shard) else None

    def of_key(self, cut: Cut, shard: int, inner: bytes) -> Iterator[Cell]:
        """The windows of one key, by looking into each window that anybody has."""
        start: bytes | None = self._first(cut, shard)
        while start is not None:
            found = next(cut.scan(windows_of(self._table), start, shard=shard), None)
            if found is None:
                return
            window = found[0][:8]
            data = cut.get(windows_of(self._table), shard, window + inner)
            if data is not None:
                yield window + inner, data
            start = after_prefix(window)

    def _first(self, cut: Cut, shard: int) -> bytes:
        """The least key of a window that is not over."""
        horizon = cut.get(horizon_of(self._table), shard, HORIZON)
        return b"" if horizon is None else time_key(key_time(horizon) - self._size_ms + 1)


class OpenReader:
    """Turns the cell of all open windows of a key into the cells that these windows will be when they close."""

    def __init__(self, table: str, keys: WindowKeys, plan: AggregatePlan | None) -> None:
        self._table, self._keys = table, keys
        self._open = OpenCells(plan) if plan is not None else None

    def cells(self, inner: bytes, data: bytes | None) -> list[Cell]:
        if data is None:
            return []
        with reading_cells(self._table):
            windows = self._objects(data) if self._open is None else self._columns(self._open, data)
            return [(self._keys.cell_key(inner, *bounds), cell) for bounds, cell in windows]

    def _objects(self, data: bytes) -> list[tuple[tuple[int, int], bytes]]:
        windows: Any = load_state(data)[3]
        return [((start, end), cell) for start, end, cell in windows]

    def _columns(self, cells: OpenCells, data: bytes) -> list[tuple[tuple[int, int], bytes]]:
        sessions, _, _ = cells.decode([data])
        rows: np.ndarray[Any, Any] = cells.rows(sessions)
        bounds = zip(sessions.start.tolist(), sessions.end.tolist(), strict=True)
        return [(both, row.tobytes()) for both, row in zip(bounds, rows, strict=True)]

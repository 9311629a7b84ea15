"""Rows of a table out of a cut that somebody holds, as columns: by key, in a range, or all, with the time of each."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from potok.kernels.aggregates import Cells
from potok.kernels.folders import shown_by
from potok.kernels.open_windows import open_table
from potok.kernels.versions import version_prefix, versions_of
from potok.kernels.windows import time_of
from potok.records.keys import decode_keys
from potok.state.codec import load_state
from potok.state.misfit import reading_cells
from potok.state.store import LONGEST_PREFIX, after_prefix, stored_stop
from potok.views.cut import Cut
from potok.views.layout import TableLayout
from potok.views.spans import ALL, Span, empty_key, scan_span
from potok.views.windows import Cell, time_key

PREFIX = 400
"""A long key is cut in the store, so scans go by what is never cut."""

Starts = tuple[float, float]
"""Windows that begin from the first instant on and up to the second, both included; in milliseconds."""

EVER: Starts = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows as they lie in the cells. `values` is a column of structs, or a list of what the table shows."""

    keys: list[Any]
    bounds: list[tuple[int, int]]
    """The windows, where the table has some."""
    values: pa.Array | list[Any]
    times: list[int]
    """The time of the record that changed a row last."""

    def __len__(self) -> int:
        return len(self.keys)


class RowReader:
    """Reads one table in cuts. It knows nothing of a cut, so it may be kept as long as the layout is the same."""

    def __init__(self, layout: TableLayout) -> None:
        self.layout, self.key_type = layout, layout.key_type
        self._windows, self._live, self._open = layout.window_keys, layout.live_windows(), layout.open_reader()
        self._numbers = Cells(layout.plan) if layout.form == "columns" else None
        self._shown = None if self._numbers else shown_by(layout.kind)

    @property
    def windowed(self) -> bool:
        return bool(self.layout.window)

    def of_keys(self, cut: Cut, keys: Iterable[bytes], starts: Starts = EVER) -> list[Cell]:
        """The cells of these keys; on a windowed table, those of all their windows that begin in `starts`."""
        table = self.layout.table
        if self.windowed:
            return [cell for key in keys for cell in self._windows_of(cut, key, starts)]
        found = ((key, cut.get(table, self.layout.shard_of(key, cut.shards), key)) for key in keys)
        return [(key, data) for key, data in found if data is not None]

    def _windows_of(self, cut: Cut, key: bytes, starts: Starts) -> list[Cell]:
        shard = self.layout.shard_of(key, cut.shards)
        low, high = starts
        if low == high and self.layout.window == "fixed":
            cells = self._one_window(cut, shard, self._windows.cell_key(key, int(low), int(low)))
        elif self._live is not None:
            cells = list(self._live.of_key(cut, shard, key))
        else:
            cells = [cell for cell in self._cells_of(cut, shard, key, starts) if self._windows.inner(cell[0]) == key]
        if self._open is not None:
            cells += self._open.cells(key, cut.get(open_table(self.layout.table), shard, key))
        return [cell for cell in cells if low <= self._windows.bounds(cell[0])[0] <= high]

    def _one_window(self, cut: Cut, shard: int, cell_key: bytes) -> list[Cell]:
        data = (
            cut.get(self.layout.table, shard, cell_key) if self._live is None else self._live.get(cut, shard, cell_key)
        )
        return [] if data is None else [(cell_key, data)]

    def _cells_of(self, cut: Cut, shard: int, key: bytes, starts: Starts) -> Iterator[Cell]:
        first, stop = key[:PREFIX], after_prefix(key[:PREFIX])
        if len(key) + 16 < PREFIX:
            low, high = starts
            first = key if low == -math.inf else key + time_key(int(low))
            stop = stop if high == math.inf else key + time_key(int(high) + 1)
        return cut.scan(self.layout.table, first, stop, shard=shard)

    def in_span(self, cut: Cut, span: Span = ALL, *, in_order: bool = False) -> Iterator[Cell]:
        """The cells among some stored keys, and perhaps others where the keys have windows. In order, shards are read
        side by side: whoever stops early has read no more than that."""
        table = self.layout.table
        if self._live is not None:
            yield from self._live.scan(cut)
        elif self.windowed:
            yield from cut.scan(table)
        elif in_order and cut.shards > 1:
            yield from empty_key(cut, table, span)
            yield from heapq.merge(*(cut.scan(table, *span, shard=shard) for shard in range(cut.shards)))
        else:
            yield from scan_span(cut, table, span)
        if self._open is not None:
            for key, data in cut.scan(open_table(table)):
                yield from self._open.cells(key, data)

    def decoded(self, cells: Sequence[Cell]) -> FoundRows:
        """What cells hold. Keys that are remembered as deleted are left out."""
        with reading_cells(self.layout.table):
            times, values = self._contents([data for _, data in cells])
        if isinstance(values, list) and self.layout.kind in ("by_time", "value") and None in values:
            there = [row for row, value in enumerate(values) if value is not None]
            cells, times, values = [cells[r] for r in there], [times[r] for r in there], [values[r] for r in there]
        keys = [key for key, _ in cells]
        if not self.windowed:
            return FoundRows(decode_keys(keys, self.key_type), [], values, times)
        inner = decode_keys([self._windows.inner(key) for key in keys], self.key_type)
        return FoundRows(inner, [self._windows.bounds(key) for key in keys], values, times)

    def as_of(self, cut: Cut, instant_ms: int, keys: Sequence[bytes] | None = None) -> FoundRows:
        """The rows that a table with versions had at an instant, those of some keys or all."""
        table = versions_of(self.layout.table)
        found: dict[bytes, Cell] = {}
        for prefix in [b""] if keys is None else [version_prefix(key) for key in keys]:
            start, stop = prefix[:LONGEST_PREFIX], stored_stop(after_prefix(prefix)) if prefix else None
            for cell in cut.scan(table, start, stop):
                key, since = cell[0][4:-8], cell[0][-8:]
                if time_of(since) <= instant_ms and cell[0].startswith(prefix) and since >= _since(found.get(key)):
                    found[key] = cell
        with reading_cells(self.layout.table):
            rows = [(key, time_of(cell[0][-8:]), load_state(cell[1])) for key, cell in sorted(found.items())]
            there = [(key, time, state[1]) for key, time, state in rows if state[1] is not None]
        decoded = decode_keys([key for key, _, _ in there], self.key_type)
        return FoundRows(decoded, [], [value for _, _, value in there], [time for _, time, _ in there])

    def _contents(self, cells: list[bytes]) -> tuple[list[int], pa.Array | list[Any]]:
        if self._numbers is not None:
            array = self._numbers.read(cells)
            times: list[int] = array["timestamp"].tolist()
            return times, self._numbers.result(array, np.ones(len(array), np.bool_))
        assert self._shown is not None
        loaded: list[Any] = [load_state(data) for data in cells]
        return [state[0] for state in loaded], [self._shown(state[1]) for state in loaded]


def _since(cell: Cell | None) -> bytes:
    return b"" if cell is None else cell[0][-8:]

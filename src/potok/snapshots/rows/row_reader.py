"""Read the rows of a table in a snapshot: by key, in a range of keys, by window, or as of an instant.

Everything that reads tables goes through `RowReader`: tables in Python, the command line, SQL and HTTP.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from potok.operators.tables.versions import version_key, version_of, version_prefix, version_value, versions_of
from potok.operators.windows.windows import open_table, time_key
from potok.records.keys import decode_keys
from potok.snapshots.rows.key_ranges import ALL, Span, empty_key, scan_span
from potok.snapshots.rows.layout import TableLayout
from potok.snapshots.rows.segments import whole_cells
from potok.snapshots.rows.versions import Version
from potok.snapshots.rows.windows import Cell
from potok.snapshots.snapshot import Snapshot
from potok.state.cell import MISFIT, CellDoesNotFit, reading_cells
from potok.state.store import LONGEST_PREFIX, after_prefix, stored_stop

PREFIX = 400
"""The store truncates long keys, but never below this length, so scans use this much of a key."""

Starts = tuple[float, float]
"""Windows that start between two instants, both inclusive, in milliseconds."""

EVER: Starts = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Decoded rows. `values` is an Arrow column, or a list of what the table shows."""

    keys: list[Any]
    bounds: list[tuple[int, int]]
    """The windows, if the table has windows."""
    values: pa.Array | list[Any]
    times: list[int]
    """The time of the record that last changed a row."""

    def __len__(self) -> int:
        return len(self.keys)


class RowReader:
    """Reads one table. It is independent of snapshots and may be reused while the layout is the same."""

    def __init__(self, layout: TableLayout) -> None:
        self.layout, self.key_type, self.windowed = layout, layout.key_type, bool(layout.window)
        self.windows = layout.window_keys
        self._live, self._open = layout.live_windows(), layout.open_reader()
        self._codec, self._hides_nulls = layout.codec(), layout.hides_nulls
        self._in_segments = layout.segments is not None

    def get(self, snapshot: Snapshot, key: bytes, default: Any = None) -> Any:
        """Return the value of one canonical key of a table without windows; `default` where there is no row."""
        layout = self.layout
        data = snapshot.get(layout.cell_table, layout.shard_of(key, snapshot.shards), key)
        if data is None:
            return default
        if self._in_segments:
            ((_, data),) = whole_cells(layout, snapshot, [(key, data)])
        try:
            value = self._codec.value(data)
        except MISFIT as error:
            raise CellDoesNotFit(layout.table, error) from error
        return default if value is None and self._hides_nulls else value

    def of_keys(self, snapshot: Snapshot, keys: Iterable[bytes], starts: Starts = EVER) -> list[Cell]:
        """Return the cells of these keys; on a windowed table, those of all their windows that start in `starts`."""
        if self.windowed:
            return [cell for key in keys for cell in self._windows_of(snapshot, key, starts)]
        table, shard_of = self.layout.cell_table, self.layout.shard_of
        found = ((key, snapshot.get(table, shard_of(key, snapshot.shards), key)) for key in keys)
        return list(whole_cells(self.layout, snapshot, [(key, data) for key, data in found if data is not None]))

    def _windows_of(self, snapshot: Snapshot, key: bytes, starts: Starts) -> list[Cell]:
        shard = self.layout.shard_of(key, snapshot.shards)
        low, high = starts
        if low == high and self.layout.window == "fixed":
            cells = self._one_window(snapshot, shard, self.windows.cell_key(key, int(low), int(low)))
        elif self._live is not None:
            cells = list(self._live.of_key(snapshot, shard, key))
        else:
            found = self._cells_of(snapshot, shard, key, starts)
            cells = [cell for cell in found if self.windows.inner(cell[0]) == key]
        if self._open is not None:
            cells += self._open.cells(key, snapshot.get(open_table(self.layout.cell_table), shard, key))
        return [cell for cell in cells if low <= self.windows.bounds(cell[0])[0] <= high]

    def _one_window(self, snapshot: Snapshot, shard: int, cell_key: bytes) -> list[Cell]:
        if self._live is None:
            data = snapshot.get(self.layout.cell_table, shard, cell_key)
        else:
            data = self._live.get(snapshot, shard, cell_key)
        return [] if data is None else [(cell_key, data)]

    def _cells_of(self, snapshot: Snapshot, shard: int, key: bytes, starts: Starts) -> Iterator[Cell]:
        first, stop = key[:PREFIX], after_prefix(key[:PREFIX])
        if len(key) + 16 < PREFIX:
            low, high = starts
            first = key if low == -math.inf else key + time_key(int(low))
            stop = stop if high == math.inf else key + time_key(int(high) + 1)
        return snapshot.scan(self.layout.cell_table, first, stop, shard=shard)

    def in_span(self, snapshot: Snapshot, span: Span = ALL, *, in_order: bool = False) -> Iterator[Cell]:
        """Yield the cells in a range of stored keys, and possibly others if the keys have windows.

        In order, shards are merged while reading: a reader that stops early has read no more than needed.
        """
        table = self.layout.cell_table
        if self._in_segments:
            yield from whole_cells(self.layout, snapshot, self._heads_in(snapshot, span, in_order=in_order))
        elif self._live is not None:
            yield from self._live.scan(snapshot)
        elif self.windowed:
            yield from snapshot.scan(table)
        else:
            yield from self._heads_in(snapshot, span, in_order=in_order)
        if self._open is not None:
            for key, data in snapshot.scan(open_table(table)):
                yield from self._open.cells(key, data)

    def _heads_in(self, snapshot: Snapshot, span: Span, *, in_order: bool) -> Iterator[Cell]:
        table = self.layout.cell_table
        if in_order and snapshot.shards > 1:
            yield from empty_key(snapshot, table, span)
            yield from heapq.merge(*(snapshot.scan(table, *span, shard=shard) for shard in range(snapshot.shards)))
        else:
            yield from scan_span(snapshot, table, span)

    def decoded(self, cells: Sequence[Cell]) -> FoundRows:
        """Decode cells, without those that only record a deleted key."""
        with reading_cells(self.layout.cell_table):
            times, values = self._codec.decode([data for _, data in cells])
        if self._hides_nulls and isinstance(values, list) and None in values:
            there = [row for row, value in enumerate(values) if value is not None]
            cells, times, values = [cells[r] for r in there], [times[r] for r in there], [values[r] for r in there]
        keys = [key for key, _ in cells]
        if not self.windowed:
            return FoundRows(decode_keys(keys, self.key_type), [], values, times)
        inner = decode_keys([self.windows.inner(key) for key in keys], self.key_type)
        return FoundRows(inner, [self.windows.bounds(key) for key in keys], values, times)

    def versions(self, snapshot: Snapshot, key: bytes, until_ms: int | None = None) -> list[Version]:
        """Return the retained versions of a row, the oldest first; those that start at `until_ms` or before."""
        last = after_prefix(version_prefix(key)) if until_ms is None else version_key(key, until_ms + 1)
        span = version_prefix(key)[:LONGEST_PREFIX], stored_stop(last)
        shard = self.layout.shard_of(key, snapshot.shards)
        found = []
        for cell_key, data in snapshot.scan(versions_of(self.layout.cell_table), *span, shard=shard):
            inner, since_ms = version_of(cell_key)
            if inner == key and (until_ms is None or since_ms <= until_ms):
                found.append((since_ms, data))
        with reading_cells(self.layout.cell_table):
            return [Version(since_ms, version_value(data)) for since_ms, data in sorted(found)]

    def as_of(self, snapshot: Snapshot, instant_ms: int, keys: Iterable[bytes] | None = None) -> FoundRows:
        """Return the rows that a table with versions had at an instant, those of some keys or all."""
        newest: dict[bytes, Version]
        if keys is None:
            newest = self._all_as_of(snapshot, instant_ms)
        else:
            newest = {key: found[-1] for key in keys if (found := self.versions(snapshot, key, instant_ms))}
        rows = [(key, version) for key, version in sorted(newest.items()) if version.value is not None]
        decoded = decode_keys([key for key, _ in rows], self.key_type)
        return FoundRows(decoded, [], [row.value for _, row in rows], [row.since_ms for _, row in rows])

    def _all_as_of(self, snapshot: Snapshot, instant_ms: int) -> dict[bytes, Version]:
        newest: dict[bytes, tuple[int, bytes]] = {}
        for cell_key, data in snapshot.scan(versions_of(self.layout.cell_table)):
            key, since_ms = version_of(cell_key)
            if since_ms <= instant_ms and (key not in newest or since_ms >= newest[key][0]):
                newest[key] = since_ms, data
        with reading_cells(self.layout.cell_table):
            return {key: Version(since_ms, version_value(data)) for key, (since_ms, data) in newest.items()}

"""What a reader gets of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from potok.clock import epoch_ms
from potok.errors import QueryError
from potok.kernels.open_windows import open_table
from potok.records.keys import decode_keys, encode_key
from potok.state.store import after_prefix
from potok.views.layout import TableLayout
from potok.views.spans import Span, scan_span, span_of_prefix, span_of_range
from potok.views.versions import Version, Versions

if TYPE_CHECKING:
    from potok.views.cut import Cut
    from potok.views.tables import Tables

Instant = int | datetime
"""Milliseconds since 1970, or a datetime (UTC unless it says otherwise)."""

PREFIX = 400


class WindowedKey(NamedTuple):
    """The key of a row of a windowed table; start and end are milliseconds since 1970.

    The end is not included, but for sessions, where it is the time of the last record, and sliding windows.
    """

    key: Any
    start_ms: int
    end_ms: int


class NotWindowed(QueryError):
    """Windows asked of a table that has none."""

    def __init__(self, table: str) -> None:
        super().__init__(f'table "{table}" has no windows', hint="use .get(key), .range(a, b) or .all()")


class TableView:
    """Reads one table; every call sees one consistent cut, as of the last committed batch."""

    def __init__(self, tables: Tables, layout: TableLayout) -> None:
        self._tables, self._layout = tables, layout
        self._reader, self._open = layout.reader(), layout.open_reader()
        self._live = layout.live_windows()
        self._window_keys = layout.window_keys
        self._key_type = layout.key_type

    def __repr__(self) -> str:
        windows = " in windows" if self.windowed else ""
        return f'<Table "{self.name}" of query "{self._tables.query}", keys {self._layout.key}{windows}>'

    @property
    def name(self) -> str:
        return self._layout.table

    @property
    def windowed(self) -> bool:
        return bool(self._layout.window)

    def get(self, key: Any, default: Any = None, *, at: Instant | None = None, as_of: Instant | None = None) -> Any:
        """The value of a key; on a windowed table, that of the last window which `at` falls into, or of the latest
        window; on a table with a history, that of the instant `as_of`."""
        if as_of is not None:
            return self._versions.get(self._canonical(key), _ms(as_of), default)
        if self.windowed:
            row = self.window(key, at)
            return default if row is None else row[1]
        return self._tables.read(lambda cut: self._get(cut, self._canonical(key), default))

    def history(self, key: Any) -> list[Version]:
        """The versions of a row that are kept, the oldest first; a value of None is a delete."""
        return self._versions.all(self._canonical(key))

    @property
    def _versions(self) -> Versions:
        return Versions(self._tables, self._layout)

    def _canonical(self, key: Any) -> bytes:
        encoded = encode_key(key, self._key_type)
        if encoded is None:
            raise QueryError(f'table "{self.name}" has no row for None', hint="a row is found by its key")
        return encoded

    def _get(self, cut: Cut, key: bytes, default: Any) -> Any:
        data = cut.get(self.name, self._layout.shard_of(key, cut.shards), key)
        if data is None:
            return default
        value = self._reader.value(data)
        return default if value is None and self._hides_nulls else value

    @property
    def _hides_nulls(self) -> bool:
        """A table by event time remembers deleted keys, so that older records stay out; readers do not see them."""
        return self._layout.kind in ("by_time", "value")

    def window(self, key: Any, at: Instant | None = None) -> tuple[WindowedKey, Any] | None:
        """The last window of a key, or the last of those which `at` falls into."""
        if at is None or self._layout.window != "fixed":
            found = self.windows(key)
            holding = [row for row in found if at is None or self._window_keys.holds(row[0][1:], _ms(at))]
            return holding[-1] if holding else None
        canonical, advance = self._canonical(key), self._layout.advance_ms
        last = _ms(at) - _ms(at) % advance
        starts = range(last, _ms(at) - self._layout.window_ms, -advance)

        def work(cut: Cut) -> tuple[WindowedKey, Any] | None:
            shard = self._layout.shard_of(canonical, cut.shards)
            for start in starts:
                cell_key = self._window_keys.cell_key(canonical, start, start)
                data = self._live.get(cut, shard, cell_key) if self._live else cut.get(self.name, shard, cell_key)
                if data is not None:
                    return next(iter(self._decoded([(cell_key, data)])), None)
            return None

        return self._tables.read(work)

    def windows(
        self, key: Any, start: Instant | None = None, end: Instant | None = None
    ) -> list[tuple[WindowedKey, Any]]:
        """The windows of a key that begin in [start, end), in order of time."""
        if not self.windowed:
            raise NotWindowed(self.name)
        canonical = self._canonical(key)
        low = -math.inf if start is None else _ms(start)
        high = math.inf if end is None else _ms(end)

        def work(cut: Cut) -> list[tuple[WindowedKey, Any]]:
            shard = self._layout.shard_of(canonical, cut.shards)
            if self._live is not None:
                mine = list(self._live.of_key(cut, shard, canonical))
            else:
                # A long key is cut in the store, so the scan goes by what is never cut.
                prefix = canonical[:PREFIX]
                cells = cut.scan(self.name, prefix, after_prefix(prefix), shard=shard)
                mine = [cell for cell in cells if self._window_keys.inner(cell[0]) == canonical]
            if self._open is not None:
                mine += self._open.cells(canonical, cut.get(open_table(self.name), shard, canonical))
            return [row for row in self._decoded(mine) if low <= row[0].start_ms < high]

        return self._tables.read(work)

    def range(self, low: Any = None, high: Any = None) -> dict[Any, Any]:
        """The rows with low <= key < high, in the order of their keys."""
        rows = self._rows_in(span_of_range(low, high, self._key_type))
        return dict(row for row in rows if _within(row[0], low, high, windowed=self.windowed))

    def prefix(self, text: str) -> dict[Any, Any]:
        """The rows whose key is a text that begins so, in the order of their keys."""
        rows = self._rows_in(span_of_prefix(text, self._key_type))
        places = ((row, row[0].key if self.windowed else row[0]) for row in rows)
        return dict(row for row, place in places if isinstance(place, str) and place.startswith(text))

    def _rows_in(self, span: Span) -> list[tuple[Any, Any]]:
        """The rows that may be in a range of keys, and perhaps others."""
        if self.windowed:
            return self._rows()
        return self._tables.read(lambda cut: self._decoded(list(scan_span(cut, self.name, span))))

    def all(self) -> dict[Any, Any]:
        """All rows, in the order of their keys."""
        return dict(self._rows())

    def items(self) -> Iterator[tuple[Any, Any]]:
        yield from self._rows()

    def __len__(self) -> int:
        return len(self._rows())

    def _rows(self) -> list[tuple[Any, Any]]:
        return self._tables.read(self.rows_of)

    def rows_of(self, cut: Cut, start: bytes = b"", stop: bytes | None = None) -> list[tuple[Any, Any]]:
        """The rows of this table in a cut that somebody holds, or those in a range of stored keys."""
        cells = list(cut.scan(self.name, start, stop) if self._live is None else self._live.scan(cut))
        if self._open is not None:
            cells += [cell for key, data in cut.scan(open_table(self.name)) for cell in self._open.cells(key, data)]
        return self._decoded(cells)

    @property
    def stored_in_order(self) -> bool:
        """Whether the order of the stored bytes is that of the keys."""
        return not self.windowed and self._key_type is not None

    def _decoded(self, cells: list[tuple[bytes, bytes]]) -> list[tuple[Any, Any]]:
        values = self._reader.values([data for _, data in cells]) if cells else []
        keys = self._keys([key for key, _ in cells])
        pairs = zip(keys, values, strict=True)
        return in_order([(key, value) for key, value in pairs if value is not None or not self._hides_nulls])

    def _keys(self, cell_keys: list[bytes]) -> list[Any]:
        if not self.windowed:
            return [hashable(key) for key in decode_keys(cell_keys, self._key_type)]
        windows = self._window_keys
        keys = decode_keys([windows.inner(key) for key in cell_keys], self._key_type)
        bounds = [windows.bounds(key) for key in cell_keys]
        return [WindowedKey(hashable(key), *both) for key, both in zip(keys, bounds, strict=True)]


def in_order(rows: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Rows by their keys; keys of several kinds that Python cannot compare stand by kind, then by their text."""
    try:
        return sorted(rows, key=lambda row: row[0])
    except TypeError:
        return sorted(rows, key=lambda row: (type(row[0]).__name__, repr(row[0])))


def _within(key: Any, low: Any, high: Any, *, windowed: bool) -> bool:
    place = key.key if windowed else key
    try:
        return (low is None or hashable(low) <= place) and (high is None or place < hashable(high))
    except TypeError:
        return False


def hashable(key: Any) -> Any:
    """A key that can stand in a dict: lists and structs become tuples."""
    if isinstance(key, dict):
        return tuple((name, hashable(value)) for name, value in key.items())
    return tuple(hashable(item) for item in key) if isinstance(key, list | tuple) else key


def _ms(at: Instant) -> int:
    return epoch_ms(at) if isinstance(at, datetime) else at

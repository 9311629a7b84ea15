"""Read a table: rows, ranges, windows and history."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from potok.clock import epoch_ms
from potok.errors import QueryError
from potok.extras import need_extra
from potok.records.keys import encode_key
from potok.snapshots.rows.columns import ColumnReader
from potok.snapshots.rows.key_ranges import ALL, Span, span_of_prefix, span_of_range
from potok.snapshots.rows.layout import TableLayout
from potok.snapshots.rows.row_reader import RowReader
from potok.snapshots.rows.versions import NoHistory, Version, check_retained
from potok.snapshots.rows.windows import Cell

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from potok.snapshots.snapshot import Snapshot
    from potok.snapshots.tables import Tables

Instant = int | datetime
"""Milliseconds since 1970, or a datetime (UTC if it has no time zone)."""


class WindowedKey(NamedTuple):
    """The key of a row of a windowed table; start and end are milliseconds since 1970.

    The end is exclusive, except for sessions, where it is the time of the last record, and sliding windows.
    """

    key: Any
    start_ms: int
    end_ms: int


class NotWindowed(QueryError):
    """Windows were requested from a table without windows."""

    def __init__(self, table: str) -> None:
        super().__init__(f'table "{table}" has no windows', hint="use .get(key), .range(a, b) or .all()")


class TableView:
    """Reads one table; every call sees one consistent snapshot of the last committed batch."""

    def __init__(self, tables: Tables, layout: TableLayout) -> None:
        self._tables, self._layout = tables, layout
        self._reader = RowReader(layout)

    def __repr__(self) -> str:
        windows = " in windows" if self.windowed else ""
        return f'<Table "{self.name}" of query "{self._tables.query}", keys {self._layout.key}{windows}>'

    @property
    def name(self) -> str:
        return self._layout.table

    @property
    def windowed(self) -> bool:
        """Whether the rows of the table are windows of a key."""
        return self._reader.windowed

    def get(self, key: Any, default: Any = None, *, at: Instant | None = None, as_of: Instant | None = None) -> Any:
        """Return the value of a key.

        On a windowed table, return that of the last window that contains `at`, or of the latest window; on a table
        with a history, that of the instant `as_of`.
        """
        if as_of is not None:
            return self._get_as_of(self._canonical(key), _ms(as_of), default)
        if self.windowed:
            row = self.window(key, at)
            return default if row is None else row[1]
        canonical = self._canonical(key)
        return self._tables.read(lambda snapshot: self._reader.get(snapshot, canonical, default))

    def _get_as_of(self, key: bytes, as_of_ms: int, default: Any) -> Any:
        self._require_history()
        check_retained(self._layout, self._tables.watermark_ms(self.name), as_of_ms)
        found = self._tables.read(lambda snapshot: self._reader.versions(snapshot, key, as_of_ms))
        return found[-1].value if found and found[-1].value is not None else default

    def history(self, key: Any) -> list[Version]:
        """Return the retained versions of a row, the oldest first; a value of None is a delete."""
        self._require_history()
        canonical = self._canonical(key)
        return self._tables.read(lambda snapshot: self._reader.versions(snapshot, canonical))

    def _require_history(self) -> None:
        if not self._layout.history_ms:
            raise NoHistory(self.name)

    def _canonical(self, key: Any) -> bytes:
        encoded = encode_key(key, self._reader.key_type)
        if encoded is None:
            raise QueryError(f'table "{self.name}" has no row for None', hint="pass the key of a row")
        return encoded

    def window(self, key: Any, at: Instant | None = None) -> tuple[WindowedKey, Any] | None:
        """Return the latest window of a key, or the latest one that contains `at`."""
        if at is None or self._layout.window != "fixed":
            found = self.windows(key)
            holding = [row for row in found if at is None or self._reader.windows.holds(row[0][1:], _ms(at))]
            return holding[-1] if holding else None
        canonical, advance = self._canonical(key), self._layout.advance_ms
        last = _ms(at) - _ms(at) % advance
        starts = range(last, _ms(at) - self._layout.window_ms, -advance)

        def work(snapshot: Snapshot) -> tuple[WindowedKey, Any] | None:
            for start in starts:
                if cells := self._reader.of_keys(snapshot, [canonical], (start, start)):
                    return next(iter(self.rows(cells)), None)
            return None

        return self._tables.read(work)

    def windows(
        self, key: Any, start: Instant | None = None, end: Instant | None = None
    ) -> list[tuple[WindowedKey, Any]]:
        """Return the windows of a key that start in [start, end), in order of time."""
        if not self.windowed:
            raise NotWindowed(self.name)
        canonical = self._canonical(key)
        starts = (-math.inf if start is None else _ms(start), math.inf if end is None else _ms(end) - 1)
        return self._tables.read(lambda snapshot: self.rows(self._reader.of_keys(snapshot, [canonical], starts)))

    def range(self, low: Any = None, high: Any = None) -> dict[Any, Any]:
        """Return the rows with low <= key < high, in key order."""
        rows = self._rows_in(span_of_range(low, high, self._reader.key_type))
        return dict(row for row in rows if _within(row[0], low, high, windowed=self.windowed))

    def prefix(self, text: str) -> dict[Any, Any]:
        """Return the rows whose key is a string with this prefix, in key order."""
        rows = self._rows_in(span_of_prefix(text, self._reader.key_type))
        keyed_rows = ((row, row[0].key if self.windowed else row[0]) for row in rows)
        return dict(row for row, plain_key in keyed_rows if isinstance(plain_key, str) and plain_key.startswith(text))

    def _rows_in(self, span: Span = ALL) -> list[tuple[Any, Any]]:
        """Return the rows that may be in a range of keys, and possibly others."""
        return self._tables.read(lambda snapshot: self.rows_of(snapshot, span))

    def all(self) -> dict[Any, Any]:
        """Return all rows, in key order."""
        return dict(self._rows_in())

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yield all rows as pairs of key and value; the key of a windowed row names key, start and end."""
        yield from self._rows_in()

    def __len__(self) -> int:
        return len(self._rows_in())

    def to_arrow(self, *, as_of: Instant | None = None) -> pa.Table:
        """Return all rows as an Arrow table, in no particular order; of a table with a history, those of an instant.

        Its columns are `key`, `window_start` and `window_end` if the table has windows, and the value: the fields of a
        value with fields, else `value`. Keys and values without a declared type are JSON text.
        """
        reader = ColumnReader(self._layout)
        if as_of is None:
            return self._tables.read(reader.table, frozen=True)
        self._require_history()
        as_of_ms = _ms(as_of)
        check_retained(self._layout, self._tables.watermark_ms(self.name), as_of_ms)
        return self._tables.read(lambda found: pa.Table.from_batches([reader.as_of(found, as_of_ms)]), frozen=True)

    def to_pandas(self, *, as_of: Instant | None = None) -> pd.DataFrame:
        """Return all rows as a pandas DataFrame, with the columns of `to_arrow`."""
        need_extra("to_pandas", "dataframes")
        return self.to_arrow(as_of=as_of).to_pandas()

    def to_polars(self, *, as_of: Instant | None = None) -> pl.DataFrame:
        """Return all rows as a Polars DataFrame, with the columns of `to_arrow`."""
        need_extra("to_polars", "dataframes")
        import polars as pl  # slow to import

        return pl.DataFrame(self.to_arrow(as_of=as_of))

    def rows_of(self, snapshot: Snapshot, span: Span = ALL) -> list[tuple[Any, Any]]:
        """Return the rows of this table in a snapshot of the caller, or those in a range of stored keys."""
        return self.rows(self._reader.in_span(snapshot, span))

    @property
    def stored_in_order(self) -> bool:
        """Whether the stored bytes sort like the keys."""
        return not self.windowed and self._reader.key_type is not None

    def cells(self, snapshot: Snapshot, span: Span) -> Iterator[Cell]:
        """Yield the stored rows of a table without windows in a range of stored keys, for `rows`."""
        return self._reader.in_span(snapshot, span)

    def rows(self, cells: Iterable[Cell]) -> list[tuple[Any, Any]]:
        """Decode stored rows into keys and values, in key order."""
        found = self._reader.decoded(list(cells))
        values = found.values if isinstance(found.values, list) else found.values.to_pylist()
        keys: Iterable[Any] = map(hashable, found.keys)
        if self.windowed:
            keys = (WindowedKey(key, *bounds) for key, bounds in zip(keys, found.bounds, strict=True))
        return in_order(list(zip(keys, values, strict=True)))


def in_order(rows: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Sort rows by key; keys of types that Python cannot compare are sorted by type, then by their text."""
    try:
        return sorted(rows, key=lambda row: row[0])
    except TypeError:
        return sorted(rows, key=lambda row: (type(row[0]).__name__, repr(row[0])))


def _within(key: Any, low: Any, high: Any, *, windowed: bool) -> bool:
    plain_key = key.key if windowed else key
    try:
        return (low is None or hashable(low) <= plain_key) and (high is None or plain_key < hashable(high))
    except TypeError:
        return False


def hashable(key: Any) -> Any:
    """Return a key that can be used in a dict: lists and structs become tuples."""
    if isinstance(key, dict):
        return tuple((name, hashable(value)) for name, value in key.items())
    return tuple(hashable(item) for item in key) if isinstance(key, list | tuple) else key


def _ms(at: Instant) -> int:
    return epoch_ms(at) if isinstance(at, datetime) else at

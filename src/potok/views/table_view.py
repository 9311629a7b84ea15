"""What a reader gets of a table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from potok.errors import QueryError
from potok.records.keys import decode_keys, encode_key
from potok.views.layout import TableLayout

if TYPE_CHECKING:
    from potok.views.cut import Cut
    from potok.views.tables import Tables

Instant = int | datetime
"""Milliseconds since 1970, or a datetime (UTC unless it says otherwise)."""

_BIAS = 1 << 63


class WindowedKey(NamedTuple):
    """The key of a row of a windowed table; start and end are milliseconds since 1970, and the end is not included."""

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
        self._reader = layout.reader()
        self._key_type = layout.key_type

    @property
    def name(self) -> str:
        return self._layout.table

    @property
    def windowed(self) -> bool:
        return self._layout.window_ms > 0

    def get(self, key: Any, default: Any = None, *, at: Instant | None = None) -> Any:
        """The value of a key; on a windowed table, that of the window which `at` falls into, or of the latest
        window."""
        if self.windowed:
            return self._get_window(key, default, at)
        return self._tables.read(lambda cut: self._get(cut, self._canonical(key), default))

    def _canonical(self, key: Any) -> bytes:
        encoded = encode_key(key, self._key_type)
        if encoded is None:
            raise QueryError(f'table "{self.name}" has no row for None', hint="a row is found by its key")
        return encoded

    def _get(self, cut: Cut, key: bytes, default: Any) -> Any:
        data = cut.get(self.name, crc32(key) % cut.shards, key)
        if data is None:
            return default
        value = self._reader.value(data)
        return default if value is None and self._hides_nulls else value

    @property
    def _hides_nulls(self) -> bool:
        """A table by event time remembers deleted keys, so that older records stay out; readers do not see them."""
        return self._layout.form == "objects" and self._layout.kind in ("latest", "value")

    def _get_window(self, key: Any, default: Any, at: Instant | None) -> Any:
        if at is None:
            found = self.windows(key)
            return found[-1][1] if found else default
        size = self._layout.window_ms
        start = _ms(at) - _ms(at) % size
        canonical = self._canonical(key)
        cell_key = canonical + (start + _BIAS).to_bytes(8, "big")

        def work(cut: Cut) -> Any:
            data = cut.get(self.name, crc32(canonical) % cut.shards, cell_key)
            return default if data is None else self._reader.value(data)

        return self._tables.read(work)

    def windows(
        self, key: Any, start: Instant | None = None, end: Instant | None = None
    ) -> list[tuple[WindowedKey, Any]]:
        """The windows of a key that begin in [start, end), in order of time."""
        if not self.windowed:
            raise NotWindowed(self.name)
        canonical = self._canonical(key)
        low = canonical + (0 if start is None else _ms(start) + _BIAS).to_bytes(8, "big")
        high = canonical + ((1 << 64) - 1 if end is None else _ms(end) + _BIAS).to_bytes(8, "big")
        rows = [(row, value) for row, value in self._rows(low, high) if self._canonical(row.key) == canonical]
        return sorted(rows, key=lambda row: row[0].start_ms)

    def range(self, low: Any = None, high: Any = None) -> dict[Any, Any]:
        """The rows with low <= key < high, in the order of their keys."""
        start = b"" if low is None else self._canonical(low)
        stop = None if high is None else self._canonical(high)
        return dict(self._rows(start, stop))

    def all(self) -> dict[Any, Any]:
        """All rows, in the order of their keys."""
        return dict(self._rows(b"", None))

    def items(self) -> Iterator[tuple[Any, Any]]:
        yield from self._rows(b"", None)

    def __len__(self) -> int:
        return sum(1 for _ in self._rows(b"", None))

    def _rows(self, start: bytes, stop: bytes | None) -> list[tuple[Any, Any]]:
        return self._tables.read(lambda cut: self.rows_of(cut, start, stop))

    def rows_of(self, cut: Cut, start: bytes = b"", stop: bytes | None = None) -> list[tuple[Any, Any]]:
        """The rows of this table in a cut that somebody holds."""
        found = sorted(cut.scan(self.name, start, stop))
        values = self._reader.values([data for _, data in found]) if found else []
        keys = self._keys([key for key, _ in found])
        pairs = zip(keys, values, strict=True)
        return [(key, value) for key, value in pairs if value is not None or not self._hides_nulls]

    def _keys(self, cell_keys: list[bytes]) -> list[Any]:
        if not self.windowed:
            return [hashable(key) for key in decode_keys(cell_keys, self._key_type)]
        size = self._layout.window_ms
        keys = decode_keys([key[:-8] for key in cell_keys], self._key_type)
        starts = [int.from_bytes(key[-8:], "big") - _BIAS for key in cell_keys]
        return [WindowedKey(hashable(key), start, start + size) for key, start in zip(keys, starts, strict=True)]


def hashable(key: Any) -> Any:
    """A key that can stand in a dict: lists and structs become tuples."""
    if isinstance(key, dict):
        return tuple((name, hashable(value)) for name, value in key.items())
    return tuple(hashable(item) for item in key) if isinstance(key, list) else key


def _ms(at: Instant) -> int:
    if isinstance(at, datetime):
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    return at

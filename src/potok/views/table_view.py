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
PREFIX = 400


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
        """The value of a key; on a windowed table, that of the last window which `at` falls into, or of the latest
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
        return self._layout.kind in ("by_time", "value")

    def _get_window(self, key: Any, default: Any, at: Instant | None) -> Any:
        if at is None:
            found = self.windows(key)
            return found[-1][1] if found else default
        start = _ms(at) - _ms(at) % self._layout.advance_ms
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
        low = -_BIAS if start is None else _ms(start)
        high = _BIAS if end is None else _ms(end)

        def work(cut: Cut) -> list[tuple[WindowedKey, Any]]:
            # A long key is cut in the store, so the scan goes by what is never cut.
            prefix = canonical[:PREFIX]
            cells = cut.scan(self.name, prefix, after_prefix(prefix), shard=crc32(canonical) % cut.shards)
            mine = [(cell_key, data) for cell_key, data in cells if cell_key[:-8] == canonical]
            return [row for row in self._decoded(mine) if low <= row[0].start_ms < high]

        return self._tables.read(work)

    def range(self, low: Any = None, high: Any = None) -> dict[Any, Any]:
        """The rows with low <= key < high, in the order of their keys."""
        return dict(row for row in self._rows() if _within(row[0], low, high, windowed=self.windowed))

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
        return self._decoded(list(cut.scan(self.name, start, stop)))

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
        size = self._layout.window_ms
        keys = decode_keys([key[:-8] for key in cell_keys], self._key_type)
        starts = [int.from_bytes(key[-8:], "big") - _BIAS for key in cell_keys]
        return [WindowedKey(hashable(key), start, start + size) for key, start in zip(keys, starts, strict=True)]


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


def after_prefix(prefix: bytes) -> bytes | None:
    """The least key after all that begin with a prefix."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def hashable(key: Any) -> Any:
    """A key that can stand in a dict: lists and structs become tuples."""
    if isinstance(key, dict):
        return tuple((name, hashable(value)) for name, value in key.items())
    return tuple(hashable(item) for item in key) if isinstance(key, list) else key


def _ms(at: Instant) -> int:
    if isinstance(at, datetime):
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    return at

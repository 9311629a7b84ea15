"""Search the rows of a table by the text of a key, a prefix, a range, a window or an instant."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from potok.errors import QueryError
from potok.operators.tables.versions import versions_of
from potok.records.keys import encode_key
from potok.snapshots.rows.key_ranges import ALL, Span, span_of_prefix, span_of_range
from potok.snapshots.rows.key_text import parse_key
from potok.snapshots.rows.layout import TableLayout
from potok.snapshots.rows.row_reader import RowReader
from potok.snapshots.rows.versions import NoHistory, check_retained
from potok.snapshots.snapshot import Snapshot
from potok.snapshots.table_view import WindowedKey, hashable, in_order
from potok.snapshots.tables import Tables

SCANNED = 200_000
"""How many rows of a table are read for one search."""

AT_ONCE = 2_000

_MISSING = object()

Row = tuple[Any, Any]


class TooManyVersions(QueryError):
    """All rows of a table at an instant were requested, and the table retains too many versions."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" has more than {SCANNED} versions', hint="name a key, or read the history of one key"
        )


@dataclass(frozen=True, slots=True)
class Search:
    """Which rows are wanted; a criterion that is not given selects everything.

    `low` is inclusive, `high` exclusive; `find` is a part of the text of a key. Of a windowed table, `at_ms` selects
    the windows that contain an instant, `from_ms` and `to_ms` those that start in between. `as_of_ms` selects the rows
    that a table with versions had at an instant.
    """

    key: str | None = None
    prefix: str | None = None
    low: str | None = None
    high: str | None = None
    find: str = ""
    at_ms: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    as_of_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Rows in key order; `more` if there may be others."""

    rows: list[Row]
    more: bool
    batch: int


def search_table(tables: Tables, table: str, wanted: Search, limit: int) -> Found:
    """Return the first rows that a search selects, at one committed batch."""
    view, shape = tables[table], tables.layouts()[table]
    if wanted.as_of_ms is not None:
        return _as_of(tables, shape, wanted, limit)
    if wanted.key is not None:
        # The batch first: the rows are at least as new as it.
        batch = tables.read(lambda snapshot: snapshot.batch)
        rows = [row for row in rows_of_key(tables, table, wanted.key, wanted.at_ms) if _in_windows(row[0], wanted)]
        return Found(rows[:limit], len(rows) > limit, batch)
    reader, span = RowReader(shape), _span(shape, wanted)

    def work(snapshot: Snapshot) -> Found:
        cells = itertools.islice(reader.in_span(snapshot, span, in_order=True), SCANNED)
        rows: list[Row] = []
        looked_at = 0
        while len(rows) <= limit and (some := list(itertools.islice(cells, AT_ONCE))):
            looked_at += len(some)
            rows += [row for row in view.rows(some) if _is_wanted(row[0], wanted, shape)]
        return Found(in_order(rows)[:limit], len(rows) > limit or looked_at >= SCANNED, snapshot.batch)

    return tables.read(work)


def rows_of_key(tables: Tables, table: str, word: str, at_ms: int | None) -> list[Row]:
    """Return the row of a key; for a windowed table, that of the window at a time or those of all windows."""
    view, layout = tables[table], tables.layouts()[table]
    for key in parse_key(layout, word):
        if not view.windowed:
            value = view.get(key, _MISSING)
            rows = [] if value is _MISSING else [(key, value)]
        elif at_ms is None:
            rows = view.windows(key)
        else:
            row = view.window(key, at_ms)
            rows = [] if row is None else [row]
        if rows:
            return rows
    return []


def versions_of_key(tables: Tables, table: str, word: str) -> list[tuple[int, Any]]:
    """Return the retained versions of a row as (since, value), the oldest first; a value of None is a delete."""
    view, layout = tables[table], tables.layouts()[table]
    for key in parse_key(layout, word):
        if found := view.history(key):
            return [(version.since_ms, version.value) for version in found]
    return []


def _as_of(tables: Tables, layout: TableLayout, wanted: Search, limit: int) -> Found:
    if not layout.history_ms:
        raise NoHistory(layout.table)
    assert wanted.as_of_ms is not None
    as_of_ms = wanted.as_of_ms
    check_retained(layout, tables.watermark_ms(layout.table), as_of_ms)
    reader = RowReader(layout)
    keys = None if wanted.key is None else _encoded(layout, wanted.key)

    def work(snapshot: Snapshot) -> Found:
        if keys is None:
            _check_readable(snapshot, layout)
        found = reader.as_of(snapshot, as_of_ms, keys)
        values = found.values if isinstance(found.values, list) else found.values.to_pylist()
        rows = zip(map(hashable, found.keys), values, strict=True)
        chosen = in_order([row for row in rows if _is_wanted(row[0], wanted, layout)])
        return Found(chosen[:limit], len(chosen) > limit, snapshot.batch)

    return tables.read(work)


def _encoded(layout: TableLayout, word: str) -> list[bytes]:
    found = (encode_key(key, layout.key_type) for key in parse_key(layout, word))
    return [key for key in found if key is not None]


def _check_readable(snapshot: Snapshot, layout: TableLayout) -> None:
    cells = itertools.islice(snapshot.scan(versions_of(layout.cell_table)), SCANNED + 1)
    if sum(1 for _ in cells) > SCANNED:
        raise TooManyVersions(layout.table)


def _span(layout: TableLayout, wanted: Search) -> Span:
    if layout.window:
        return ALL
    if wanted.prefix is not None:
        return span_of_prefix(wanted.prefix, layout.key_type)
    low, high = (None if word is None else parse_key(layout, word)[0] for word in (wanted.low, wanted.high))
    return span_of_range(low, high, layout.key_type)


def _is_wanted(key: Any, wanted: Search, layout: TableLayout) -> bool:
    plain = key.key if isinstance(key, WindowedKey) else key
    if not _in_windows(key, wanted):
        return False
    if wanted.key is not None and plain not in map(hashable, parse_key(layout, wanted.key)):
        return False
    if wanted.prefix is not None and not str(plain).startswith(wanted.prefix):
        return False
    if wanted.find and wanted.find.lower() not in str(plain).lower():
        return False
    return all(
        _compares(layout, word, plain, below=below) for word, below in ((wanted.low, True), (wanted.high, False))
    )


def _compares(layout: TableLayout, word: str | None, key: Any, *, below: bool) -> bool:
    if word is None:
        return True
    for bound in _bounds(layout, word):
        try:
            return bool(bound <= key if below else key < bound)
        except TypeError:
            continue
    return False


def _bounds(layout: TableLayout, word: str) -> Iterator[Any]:
    return map(hashable, parse_key(layout, word))


def _in_windows(key: Any, wanted: Search) -> bool:
    if not isinstance(key, WindowedKey):
        return True
    start, end = key.start_ms, key.end_ms
    if wanted.at_ms is not None and not (start <= wanted.at_ms < end or start == wanted.at_ms):
        return False
    return (wanted.from_ms is None or wanted.from_ms <= start) and (wanted.to_ms is None or start < wanted.to_ms)

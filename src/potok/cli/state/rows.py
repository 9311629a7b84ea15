"""Find rows of a table by key text from the command line."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from potok.snapshots.key_text import parse_key

if TYPE_CHECKING:
    from potok.snapshots.layout import TableLayout
    from potok.snapshots.snapshot import Snapshot
    from potok.snapshots.tables import Tables

_MISSING = object()


def first_rows(
    tables: Tables, table: str, limit: int, low: str | None = None, high: str | None = None
) -> list[tuple[Any, Any]]:
    """Return the rows with the smallest keys of a range; of the others only the key is read."""
    view, layout = tables[table], tables.layouts()[table]
    if not view.stored_in_order:
        bounds = (None if word is None else next(iter(parse_key(layout, word))) for word in (low, high))
        return list(view.range(*bounds).items())[:limit]
    span = b"" if low is None else _bound(layout, low), None if high is None else _bound(layout, high)

    def work(snapshot: Snapshot) -> list[tuple[Any, Any]]:
        most = limit
        while True:
            cells = heapq.nsmallest(most, view.cells(snapshot, span))
            rows = view.rows(cells)
            if len(rows) >= limit or len(cells) < most:
                return rows[:limit]
            most *= 4  # some cells are deleted rows

    return tables.read(work)


def rows_of_key(tables: Tables, table: str, word: str, at_ms: int | None) -> list[tuple[Any, Any]]:
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


def _bound(layout: TableLayout, word: str) -> bytes:
    from potok.records.keys import encode_key

    return encode_key(parse_key(layout, word)[0], layout.key_type) or b""

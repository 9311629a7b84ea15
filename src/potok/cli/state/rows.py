"""Find rows of a table by key text from the command line."""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING, Any

from potok.errors import QueryError
from potok.records.schemas.declared_schema import declared_schema

if TYPE_CHECKING:
    from potok.snapshots.layout import TableLayout
    from potok.snapshots.snapshot import Snapshot
    from potok.snapshots.tables import Tables

_MISSING = object()


class NotAKey(QueryError):
    """The text is not a key of the table."""

    def __init__(self, table: str, key: str, reason: str) -> None:
        super().__init__(
            f'"{key}" is not a key of table "{table}": {reason}', hint="potok tables list shows the key types"
        )


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


def parse_key(layout: TableLayout, word: str) -> list[Any]:
    """Return the possible keys for a text: if keys have no type, 5 is a number or a string."""
    from potok.records.formats.registry import format_named

    arrow = layout.key_type
    if arrow is None:
        try:
            return [json.loads(word), word]
        except ValueError:
            return [word]
    import pyarrow as pa

    if pa.types.is_binary(arrow):
        return [bytes.fromhex(word[2:]) if word.startswith("0x") else word.encode()]
    schema = declared_schema(arrow)
    assert schema is not None
    format_name = "text" if schema.kind == "scalar" else "json"
    decoded = format_named(format_name).decode(pa.array([word.encode()]), schema)
    if decoded.errors:
        raise NotAKey(layout.table, word, decoded.errors[0])
    assert not isinstance(decoded.column, list)
    return [decoded.column[0].as_py()]


def _bound(layout: TableLayout, word: str) -> bytes:
    from potok.records.keys import encode_key

    return encode_key(parse_key(layout, word)[0], layout.key_type) or b""

"""Parse the text of a key as the type that its table has."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from potok.errors import QueryError
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema
from potok.snapshots.rows.layout import TableLayout


class NotAKey(QueryError):
    """The text is not a key of the table."""

    def __init__(self, table: str, key: str, reason: str) -> None:
        super().__init__(
            f'"{key}" is not a key of table "{table}": {reason}', hint="potok tables list shows the key types"
        )


def parse_key(layout: TableLayout, word: str) -> list[Any]:
    """Return the possible keys for a text: if keys have no type, 5 is a number or a string."""
    arrow = layout.key_type
    if arrow is None:
        try:
            return [json.loads(word), word]
        except ValueError:
            return [word]
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

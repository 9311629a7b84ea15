"""Convert keys and values of records to the types and the text format of PostgreSQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from potok.records.formats.format import Column, Encoded
from potok.records.formats.json.encode import encode_typed
from potok.records.formats.registry import format_named
from potok.sinks.key_texts import key_texts
from potok.sinks.table_columns import TableColumn

_NAMES: tuple[tuple[Any, str], ...] = (
    (pa.types.is_string, "text"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "smallint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_float32, "real"),
    (pa.types.is_float64, "double precision"),
    (pa.types.is_binary, "bytea"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
)


def sql_type(column: TableColumn) -> str:
    """Return the type of a column in PostgreSQL."""
    if column.type is None:
        return "text" if column.is_key else "jsonb"
    if pa.types.is_decimal(column.type):
        return f"numeric({column.type.precision},{column.type.scale})"
    if pa.types.is_timestamp(column.type):
        return "timestamptz" if column.type.tz else "timestamp"
    return next((name for matches, name in _NAMES if matches(column.type)), "jsonb")


def column_texts(column: TableColumn, whole: Column) -> Encoded:
    """Return the values of a column in PostgreSQL's text format, null for null."""
    found = whole.field(column.field) if column.field and not isinstance(whole, list) else whole
    if isinstance(found, list):
        return key_texts(found) if column.is_key else format_named("json").encode(found, None)
    assert not isinstance(whole, list)
    if column.field and whole.null_count:
        found = pc.if_else(whole.is_valid(), found, None)
    if sql_type(column) == "jsonb":
        return Encoded(encode_typed(found).cast(pa.string()))
    if sql_type(column) == "bytea":
        hexes = [None if item is None else f"\\x{item.hex()}" for item in found.to_pylist()]
        return Encoded(pa.array(hexes, pa.string()))
    return Encoded(found.cast(pa.string()))

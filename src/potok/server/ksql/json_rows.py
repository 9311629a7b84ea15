"""Encode rows as JSON in the format of ksqlDB."""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from potok.sql.types import BIGINT, BOOLEAN, INT, VARCHAR, quoted, type_name
from potok.statements.results import ResultColumn, Row

Writer = Callable[[Any], Any]

_AS_IT_IS = (BOOLEAN, INT, BIGINT, VARCHAR, pa.null())
_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME


class RowWriter:
    """Encode the rows of one result."""

    def __init__(self, columns: Sequence[ResultColumn]) -> None:
        self.columns = tuple(columns)
        self._names = [column.name for column in columns]
        writers = [writer_of(column.type) for column in columns]
        self._writers = None if all(writer is None for writer in writers) else writers

    def values(self, row: Row) -> Sequence[Any]:
        """Convert a row for `dump`."""
        if self._writers is None:
            return row
        pairs = zip(self._writers, row, strict=True)
        return [value if write is None or value is None else write(value) for write, value in pairs]

    def array(self, row: Row) -> bytes:
        return dump(self.values(row))

    def named(self, row: Row) -> dict[str, Any]:
        return dict(zip(self._names, self.values(row), strict=True))

    def all_named(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        return [self.named(row) for row in rows]


def dump(value: Any) -> bytes:
    return orjson.dumps(value, default=_plain, option=_OPTIONS)


def writer_of(type_: pa.DataType) -> Writer | None:
    """Return the function that converts non-NULL values to JSON; None if they need no conversion."""
    if type_ in _AS_IT_IS:
        return None
    if pa.types.is_floating(type_):
        return _number
    if pa.types.is_list(type_) or pa.types.is_map(type_):
        inner = writer_of(type_.value_type if pa.types.is_list(type_) else type_.item_type)
        return _list_writer(inner) if pa.types.is_list(type_) else _map_writer(inner)
    if pa.types.is_struct(type_):
        return _struct_writer({field.name: writer_of(field.type) for field in type_})
    return _plain


def _list_writer(inner: Writer | None) -> Writer:
    if inner is None:
        return lambda items: items
    return lambda items: [None if item is None else inner(item) for item in items]


def _map_writer(inner: Writer | None) -> Writer:
    def write(value: Any) -> Any:
        pairs = value.items() if isinstance(value, dict) else value
        return {_map_key(key): item if item is None or inner is None else inner(item) for key, item in pairs}

    return write


def _map_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    return str(key).lower() if isinstance(key, bool) else str(_plain(key))


def _struct_writer(writers: dict[str, Writer | None]) -> Writer:
    def write(value: Any) -> Any:
        return {
            name: item if item is None or (inner := writers.get(name)) is None else inner(item)
            for name, item in value.items()
        }

    return write


def _number(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _plain(value: Any) -> Any:
    """Convert types that JSON lacks: decimals keep all digits, bytes are base64, times are ISO text in milliseconds."""
    if isinstance(value, Decimal):
        return orjson.Fragment(format(value, "f")) if value.is_finite() else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.datetime):
        utc = value.astimezone(dt.UTC) if value.tzinfo else value
        return utc.replace(tzinfo=None).isoformat(timespec="milliseconds")
    if isinstance(value, dt.time):
        return value.isoformat(timespec="milliseconds" if value.microsecond else "seconds")
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if isinstance(value, int | float | str | list | dict) else str(value)


def type_text(type_: pa.DataType) -> str:
    """Return the name of a type in ksqlDB's API, where VARCHAR is STRING."""
    return type_name(type_).replace("VARCHAR", "STRING")


def schema_text(columns: Sequence[ResultColumn], *, keys: bool = True) -> str:
    """``` `ID` STRING KEY, `TOTAL` DOUBLE ```."""
    metadata_keys = [" KEY" if keys and column.is_key else "" for column in columns]
    return ", ".join(
        f"{_backticked(column.name)} {type_text(column.type)}{mark}"
        for column, mark in zip(columns, metadata_keys, strict=True)
    )


def _backticked(name: str) -> str:
    rendered = quoted(name)
    return rendered if rendered.startswith("`") else f"`{rendered}`"


def schema_tree(type_: pa.DataType) -> dict[str, Any]:
    """Return a type in the nested format of ksqlDB's descriptions."""
    if pa.types.is_list(type_):
        return {"type": "ARRAY", "fields": None, "memberSchema": schema_tree(type_.value_type)}
    if pa.types.is_map(type_):
        return {"type": "MAP", "fields": None, "memberSchema": schema_tree(type_.item_type)}
    if pa.types.is_struct(type_):
        fields = [{"name": field.name, "schema": schema_tree(field.type)} for field in type_]
        return {"type": "STRUCT", "fields": fields, "memberSchema": None}
    if pa.types.is_decimal(type_):
        numbers = {"precision": type_.precision, "scale": type_.scale}
        return {"type": "DECIMAL", "fields": None, "memberSchema": None, "parameters": numbers}
    return {"type": type_text(type_), "fields": None, "memberSchema": None}

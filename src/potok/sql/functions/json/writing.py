"""Convert values of any type to JSON."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from potok.compat.java.doubles import double_text
from potok.sql.expressions.conversions.show_text import show_value
from potok.sql.functions.function import Context
from potok.sql.functions.json.documents import plain, write


def to_json(arguments: Sequence[Any], _: int, result: pa.DataType, __: Context) -> pa.Array:
    """Convert a column to JSON, with sorted struct fields and map keys. NULL becomes null, also at the top level."""
    column = arguments[0]
    writer = _writer(column.type)
    rendered: list[str] = ["null" if value is None else writer(value) for value in column.to_pylist()]
    return pa.array(rendered, result)


def _writer(type_: pa.DataType) -> Callable[[Any], str]:
    """Return the function that formats non-NULL values of a type."""
    if pa.types.is_list(type_):
        item = _nullable(_writer(type_.value_type))
        return lambda values: f"[{','.join(map(item, values))}]"
    if pa.types.is_map(type_):
        return _map_writer(type_)
    if pa.types.is_struct(type_):
        fields = [(field.name, _nullable(_writer(field.type))) for field in sorted(type_, key=lambda f: _order(f.name))]
        return lambda row: f"{{{','.join(f'{write(name)}:{show(row[name])}' for name, show in fields)}}}"
    return _scalar


def _map_writer(type_: pa.DataType) -> Callable[[Any], str]:
    item = _nullable(_writer(type_.item_type))

    def show(pairs: list[tuple[Any, Any]]) -> str:
        texts = {show_value(key, type_.key_type): value for key, value in pairs}
        return f"{{{','.join(f'{write(key)}:{item(texts[key])}' for key in sorted(texts, key=_order))}}}"

    return show


def _nullable(show: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "null" if value is None else show(value)


def _order(name: str) -> bytes:
    """Java sorts strings by UTF-16 code unit."""
    return name.encode("utf-16-be", "surrogatepass")


def _scalar(value: Any) -> str:
    match value:
        case float():
            rendered = double_text(value)
            return f'"{rendered}"' if rendered[-1] in "Ny" else rendered
        case Decimal():
            return plain(value)
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'
        case datetime():
            return f'"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}"'
        case time():
            return f'"{value.isoformat("seconds" if value.second else "minutes")}"'
        case date():
            return f'"{value.isoformat()}"'
    return write(value)

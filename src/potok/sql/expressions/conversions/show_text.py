"""Convert values to strings as Java prints them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from potok.compat.java.doubles import double_text
from potok.sql.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIME, TIMESTAMP, VARCHAR


def show_column(column: pa.Array) -> pa.Array:
    """Convert a column to VARCHAR."""
    type_ = column.type
    if type_ in (BOOLEAN, INT, BIGINT, DATE) or (pa.types.is_decimal(type_) and type_.scale <= 6):
        return column.cast(VARCHAR)
    if type_ == TIMESTAMP:
        return pc.strftime(column.cast(pa.timestamp("ms", "UTC"), safe=False), format="%Y-%m-%dT%H:%M:%S")
    rendered = [None if value is None else show_value(value, type_) for value in column.to_pylist()]
    return pa.array(rendered, VARCHAR)


def shows(type_: pa.DataType) -> bool:
    """Return whether a type can be converted to VARCHAR. BYTES cannot; there are functions for that."""
    if pa.types.is_list(type_):
        return shows(type_.value_type)
    if pa.types.is_map(type_):
        return shows(type_.key_type) and shows(type_.item_type)
    if pa.types.is_struct(type_):
        return all(shows(field.type) for field in type_)
    return type_ in (VARCHAR, BOOLEAN, INT, BIGINT, DOUBLE, DATE, TIME, TIMESTAMP) or pa.types.is_decimal(type_)


def show_value(value: Any, type_: pa.DataType) -> str:
    """One value: arrays as `[1, 2]`, maps as `{k=v}`, structs as `Struct{F=1}` without fields that are NULL.

    >>> show_value([1.5, None, 1e10], pa.list_(DOUBLE))
    '[1.5, null, 1.0E10]'
    """
    if value is None:
        return "null"
    if pa.types.is_list(type_):
        return f"[{', '.join(show_value(item, type_.value_type) for item in value)}]"
    if pa.types.is_map(type_):
        pairs = (f"{show_value(key, type_.key_type)}={show_value(item, type_.item_type)}" for key, item in value)
        return f"{{{', '.join(pairs)}}}"
    if pa.types.is_struct(type_):
        rendered = (f"{f.name}={show_value(value[f.name], f.type)}" for f in type_ if value[f.name] is not None)
        return f"Struct{{{','.join(rendered)}}}"
    return _scalar(value)


def _scalar(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}"
        case time():
            return _time_text(value)
        case date():
            return value.isoformat()
    return str(value)


def _time_text(value: time) -> str:
    if value.microsecond:
        return value.isoformat("milliseconds")
    return value.isoformat("seconds" if value.second else "minutes")

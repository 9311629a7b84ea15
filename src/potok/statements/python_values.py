"""Convert columns to Python values, including dates that Python cannot represent.

Python's calendar covers the years 1 to 9999, but SQL computes with dates before and after. These become strings in
Java's format: `+12345-06-30`, `-0044-03-15T12:00:00.000`.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from potok.compat.java.dates.calendar import civil

_DAY_US = 86_400_000_000


def python_values(column: pa.Array) -> list[Any]:
    """Convert a column to Python values; maps and structs become dicts."""
    try:
        found: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    except (ValueError, OverflowError):
        return [_value(scalar) for scalar in column]
    return found


def _value(scalar: pa.Scalar) -> Any:
    type_ = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_struct(type_):
        return {name: _value(part) for name, part in scalar.items()}
    if pa.types.is_map(type_):
        # A map scalar converts its entries eagerly, which may fail; its array converts them one by one.
        entries = scalar.values
        keys, items = entries.field(0), entries.field(1)
        return {_value(key): _value(item) for key, item in zip(keys, items, strict=True)}
    if pa.types.is_list(type_):
        return [_value(item) for item in scalar.values]
    if pa.types.is_date(type_):
        return _date(scalar)
    return _instant(scalar) if pa.types.is_timestamp(type_) else scalar.as_py()


def _date(scalar: pa.Scalar) -> dt.date | str:
    try:
        found: dt.date = scalar.as_py()
    except (ValueError, OverflowError):
        return _shown_date(scalar.value)
    return found


def _instant(scalar: pa.Scalar) -> dt.datetime | str:
    try:
        found: dt.datetime = scalar.as_py()
    except (ValueError, OverflowError):
        days, micros = divmod(scalar.cast(pa.timestamp("us", scalar.type.tz)).value, _DAY_US)
        seconds, rest = divmod(micros, 1_000_000)
        time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest // 1_000:03d}"
        return f"{_shown_date(days)}T{time}"
    return found


def _shown_date(days: int) -> str:
    year, month, day = civil(days)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"

"""Write rows as Protobuf messages."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa

from potok.records.conversion.binary_rules import unscaled_bytes
from potok.records.conversion.convert import MisfitError
from potok.records.formats.protobuf.schema import known_message
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)
_MS, _NANOS = 1000, 1_000_000

_Filler: TypeAlias = Callable[[Any, Any], None]
"""Fills a message of an object."""


@lru_cache(maxsize=64)
def struct_writer(arrow: pa.DataType, nulls: str = "optional") -> _Filler:
    """Return a function that fills a message from a row; it omits null fields, and raises `MisfitError` for a null
    where none is allowed.
    """
    schema = declared_schema(arrow)
    assert schema is not None
    parts = [
        (f"f{number}", field.name, _field_writer(field.schema, field.name, nulls))
        for number, field in enumerate(schema.fields, 1)
    ]

    def write(message: Any, row: Any) -> None:
        for attribute, name, write_one in parts:
            if row[name] is not None:
                write_one(message, attribute, row[name])

    return write


def _field_writer(schema: Schema, name: str, nulls: str) -> Callable[[Any, str, Any], None]:
    fill = _filler(schema.item or schema, nulls)
    if schema.kind == "list":
        return lambda message, attribute, items: _write_list(getattr(message, attribute), items, fill, name)
    if schema.kind == "map":
        return lambda message, attribute, items: _write_map(getattr(message, attribute), items, fill, name)
    if fill is None and nulls != "wrapper":
        return setattr
    fill = fill or _fill_wrapper

    def write(message: Any, attribute: str, obj: Any) -> None:
        part = getattr(message, attribute)
        part.SetInParent()
        fill(part, obj)

    return write


def _write_list(made: Any, items: list[Any], fill: _Filler | None, name: str) -> None:
    for item in items:
        if item is None:
            raise MisfitError(f'field "{name}": Protobuf has no null in a list')
        if fill is None:
            made.append(item)
        else:
            fill(made.add(), item)


def _write_map(made: Any, items: dict[Any, Any], fill: _Filler | None, name: str) -> None:
    for key, item in items.items():
        if item is None:
            raise MisfitError(f'field "{name}": Protobuf has no null in a map')
        if fill is None:
            made[key] = item
        else:
            fill(made[key], item)


def _filler(schema: Schema, nulls: str) -> _Filler | None:
    """Return a function that fills a message, or None for scalars."""
    if schema.kind == "struct":
        return struct_writer(schema.arrow, nulls)
    known = known_message(schema.arrow)
    if known == "Decimal":
        return _decimals(schema)
    return None if known is None else _FILLERS[known]


def _fill_wrapper(message: Any, obj: Any) -> None:
    message.f1 = obj


def _fill_timestamp(message: Any, at: dt.datetime) -> None:
    # Round down, also before 1970.
    ms = (at.replace(tzinfo=dt.UTC) - _EPOCH) // _MILLISECOND
    message.f1, message.f2 = ms // _MS, ms % _MS * _NANOS


def _fill_date(message: Any, day: dt.date) -> None:
    message.f1, message.f2, message.f3 = day.year, day.month, day.day


def _fill_time(message: Any, at: dt.time) -> None:
    message.f1, message.f2, message.f3, message.f4 = at.hour, at.minute, at.second, at.microsecond * 1000


def _decimals(schema: Schema) -> _Filler:
    precision, scale = schema.arrow.precision, schema.arrow.scale

    def fill(message: Any, number: Any) -> None:
        message.f1, message.f2, message.f3 = unscaled_bytes(number), precision, scale

    return fill


_FILLERS: dict[str, _Filler] = {"Timestamp": _fill_timestamp, "Date": _fill_date, "TimeOfDay": _fill_time}

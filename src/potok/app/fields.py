"""The fields of a record class: as something to point at, and as what reads their values from plain data."""

from __future__ import annotations

import datetime as dt
import types
import typing
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from potok.errors import PotokError

Convert = Callable[[Any], Any]
"""From what JSON gives to what the field holds; raises ValueError for what does not fit."""


class FieldDescriptor:
    """What `Order.user_id` is: a field to group by, not a value. Of an instance, the value itself is found first."""

    def __init__(self, name: str, model: type, annotation: object) -> None:
        self.field, self.model, self.type = name, model, annotation

    def __get__(self, instance: object, owner: type) -> FieldDescriptor:
        # A class that is being made asks for the defaults of its fields, and a field of its parent is none.
        if instance is None and "__record_fields__" in vars(owner):
            return self
        raise AttributeError(self.field)

    def __repr__(self) -> str:
        return f"{self.model.__name__}.{self.field}"

    def getattr(self, record: Any) -> Any:
        """The value of this field of a record, or of a dict."""
        return record[self.field] if isinstance(record, dict) else getattr(record, self.field)


def converter(annotation: Any, *, coerce: bool = False) -> Convert:
    """What reads a field of this type."""
    if isinstance(annotation, typing.NewType):
        return converter(annotation.__supertype__, coerce=coerce)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return converter(arguments[0], coerce=coerce)
    if origin in (typing.Union, types.UnionType):
        return _union([converter(choice, coerce=coerce) for choice in arguments if choice is not types.NoneType])
    if origin in (list, set, tuple) and arguments:
        return _items(origin, converter(arguments[0], coerce=coerce))
    if origin is dict and len(arguments) == 2:
        return _values(converter(arguments[1], coerce=coerce))
    if isinstance(annotation, type) and hasattr(annotation, "from_data"):
        annotation.prepare()  # type: ignore[attr-defined]
        return lambda value: value if isinstance(value, annotation) else annotation.from_data(value)
    kind = origin or annotation
    if coerce and kind in (int, float, str):
        return lambda value: _coerced(kind, value)
    if kind in _READERS:
        return _READERS[kind]
    return _kind(kind) if isinstance(kind, type) and kind is not object else _any


def _any(value: Any) -> Any:
    return value


def _kind(kind: type) -> Convert:
    def check(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        raise ValueError(f"{value!r} is no {kind.__name__}"[:200])

    return check


def _number(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value)
    raise ValueError(f"{value!r} is no number"[:200])


def _integer(value: Any) -> Any:
    if type(value) is int:
        return value
    raise ValueError(f"{value!r} is no whole number"[:200])


def _instant(value: Any) -> Any:
    if isinstance(value, str):
        return dt.datetime.fromisoformat(value)
    return _kind(dt.datetime)(value)


def _date(value: Any) -> Any:
    return dt.date.fromisoformat(value) if isinstance(value, str) else _kind(dt.date)(value)


def _decimal(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, str | int | float):
        try:
            return Decimal(str(value))
        except InvalidOperation as error:
            raise ValueError(f"{value!r} is no decimal"[:200]) from error
    raise ValueError(f"{value!r} is no decimal"[:200])


def _uuid(value: Any) -> Any:
    return UUID(value) if isinstance(value, str) else _kind(UUID)(value)


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else _kind(bytes)(value)


_READERS: dict[Any, Convert] = {
    Any: _any,
    float: _number,
    int: _integer,
    bytes: _bytes,
    Decimal: _decimal,
    dt.datetime: _instant,
    dt.date: _date,
    UUID: _uuid,
}


def _coerced(kind: Any, value: Any) -> Any:
    try:
        return kind(value)
    except TypeError as error:
        raise ValueError(f"{value!r} is no {kind.__name__}"[:200]) from error


def _union(choices: list[Convert]) -> Convert:
    def read(value: Any) -> Any:
        if value is None:
            return None
        for convert in choices[:-1]:
            try:
                return convert(value)
            except (ValueError, TypeError, PotokError):
                continue
        return choices[-1](value)

    return read


def _items(kind: Callable[[Any], Any], convert: Convert) -> Convert:
    def read(value: Any) -> Any:
        if not isinstance(value, list | tuple | set):
            raise ValueError(f"{value!r} is no list"[:200])
        return kind(map(convert, value))

    return read


def _values(convert: Convert) -> Convert:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is no map"[:200])
        return {key: convert(item) for key, item in value.items()}

    return read

"""Read many records of plain data at once, field by field.

`Record.from_data` defines the result for one value. Here each step processes a whole column, which takes a fifth of
the time; if any value is irregular, all of them are read one by one.

`msgspec.convert` gains nothing here: 0.63 us a record of four plain fields against 0.45 us, and 1.07 us against 1.15 us
with a list among them. It also coerces less, and describes a misfit in other words.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

from potok.errors import PotokError
from potok.faust.records.model import NAMESPACE, Model
from potok.faust.records.record_plan import columns_of
from potok.operators.agents.values import IMMUTABLE, copied

Copy = Callable[[Any], Any]


def read_all(model: type[Model], column: list[Any], count: int) -> list[list[Any]] | None:
    """Return the records of `model`, `count` times, as separate objects. None if some value does not fit, lacks a
    field, or names its class.
    """
    readers = columns_of(model)
    if readers is None or set(map(type, column)) != {dict}:
        return None
    if set(map(len, column)) != {len(readers)}:
        if any(NAMESPACE in item for item in column):
            return None
        narrowed = _narrowed(column, tuple(readers))
        if narrowed is None:
            return None
        column = narrowed
    read: dict[str, tuple[list[Any], Copy | None]] = {}
    for name, (kind, convert) in readers.items():
        try:
            values = list(map(itemgetter(name), column))
            kinds = set(map(type, values))
            otherwise = kinds != {kind}
            if otherwise:
                values = list(map(convert, values))
                kinds = set(map(type, values))
        except (KeyError, ValueError, TypeError, OverflowError, PotokError):
            return None
        if not IMMUTABLE.issuperset(kinds):
            read[name] = values, _copy_of(kinds, values)
        elif otherwise:
            read[name] = values, None
    try:
        return [_made(model, column, read) for _ in range(count)]
    except PotokError:
        # Something in it is not data; reading the records one by one finds which.
        return None


def _narrowed(column: list[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]] | None:
    """Return the fields with these names, of data that may have others too. None if one is missing."""
    try:
        parts = [list(map(itemgetter(name), column)) for name in names]
    except KeyError:
        return None
    return [dict(zip(names, row)) for row in zip(*parts)]  # noqa: B905 - speed; each has all names


def _copy_of(kinds: set[type], values: list[Any]) -> Copy:
    """Return what copies the values of a field: one level, if nothing below it is mutable."""
    if kinds == {list} and IMMUTABLE.issuperset(map(type, chain.from_iterable(values))):
        return list.copy
    if kinds == {dict} and IMMUTABLE.issuperset(map(type, chain.from_iterable(map(dict.values, values)))):
        return dict.copy
    return copied


def _made(model: type[Model], column: list[Any], read: dict[str, tuple[list[Any], Copy | None]]) -> list[Any]:
    """Return a copy of the data, with the fields in `read` replaced."""
    parts = list(map(dict.copy, column))
    for name, (values, copy) in read.items():
        for part, value in zip(parts, values if copy is None else map(copy, values), strict=True):
            part[name] = value
    made = list(map(model.__new__, repeat(model, len(parts))))
    for record, part in zip(made, parts, strict=True):
        record.__dict__ = part
    return made

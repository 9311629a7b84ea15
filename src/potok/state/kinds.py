"""The classes that a cell can hold beside those of MessagePack, and how each is written.

A value with parts is an array that begins with a mark, an extension of one byte; a value without parts is an extension
of its own. To read one never looks a class up by name: the classes below are all that there are.
"""

from __future__ import annotations

import struct
import uuid
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

from msgpack import ExtType

from potok.records.value import Value

MARK = 80
"""The extension that begins an array; its one byte says what the rest is."""

BIG_INT, DECIMAL, COMPLEX, UUID_, DATE, DATETIME, TIME, TIMEDELTA, BYTEARRAY = range(1, 10)

_DATE = struct.Struct(">HBB")
_TIME = struct.Struct(">BBBIB")
_SPAN = struct.Struct(">iii")
_COMPLEX = struct.Struct(">dd")


class Mark:
    """The beginning of an array that stands for something else: what makes it of the other items."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[list[Any]], Any]) -> None:
        self.make = make


def in_order(items: Iterable[Any]) -> list[Any]:
    """The items of a set in the same order in every process, where they have one: a cell that says the same has the
    same bytes."""
    try:
        return sorted(items)
    except (TypeError, ArithmeticError):
        return list(items)


_WITH_PARTS: list[tuple[type, Callable[[Any], list[Any]], Callable[[list[Any]], Any]]] = [
    (tuple, list, tuple),
    (set, in_order, set),
    (frozenset, in_order, frozenset),
    (Value, lambda o: [dict(o)], lambda items: Value(items[0])),
    (Counter, lambda o: [dict(o)], lambda items: Counter(items[0])),
    (OrderedDict, lambda o: [dict(o)], lambda items: OrderedDict(items[0])),
    (deque, lambda o: [o.maxlen, *o], lambda items: deque(items[1:], items[0])),
    (range, lambda o: [o.start, o.stop, o.step], lambda items: range(*items)),
    (slice, lambda o: [o.start, o.stop, o.step], lambda items: slice(*items)),
    (timezone, lambda o: list(o.__getinitargs__()), lambda items: timezone(*items)),
    (Fraction, lambda o: [o.numerator, o.denominator], lambda items: Fraction(*items)),
]
"""Class, its parts, and the way back. The number of a row is written in cells: new ones are added at the end."""

_AWARE_DATETIME, _AWARE_TIME = len(_WITH_PARTS), len(_WITH_PARTS) + 1

MARKS = [
    *(Mark(make) for _, _, make in _WITH_PARTS),
    Mark(lambda items: datetime.replace(items[0], tzinfo=items[1])),
    Mark(lambda items: time.replace(items[0], tzinfo=items[1])),
]


def _mark(number: int) -> ExtType:
    return ExtType(MARK, bytes([number]))


def _big_int(o: int) -> ExtType:
    return ExtType(BIG_INT, o.to_bytes(o.bit_length() // 8 + 1, "big", signed=True))


def _datetime(o: datetime) -> Any:
    if o.tzinfo is not None:
        return [_mark(_AWARE_DATETIME), o.replace(tzinfo=None), o.tzinfo]
    day = _DATE.pack(o.year, o.month, o.day)
    return ExtType(DATETIME, day + _TIME.pack(o.hour, o.minute, o.second, o.microsecond, o.fold))


def _time(o: time) -> Any:
    if o.tzinfo is not None:
        return [_mark(_AWARE_TIME), o.replace(tzinfo=None), o.tzinfo]
    return ExtType(TIME, _TIME.pack(o.hour, o.minute, o.second, o.microsecond, o.fold))


def _with_parts(number: int, parts: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    mark = _mark(number)
    return lambda o: [mark, *parts(o)]


SPELL: dict[type, Callable[[Any], Any]] = {
    **{kind: _with_parts(number, parts) for number, (kind, parts, _) in enumerate(_WITH_PARTS)},
    int: _big_int,
    Decimal: lambda o: ExtType(DECIMAL, str(o).encode()),
    complex: lambda o: ExtType(COMPLEX, _COMPLEX.pack(o.real, o.imag)),
    uuid.UUID: lambda o: ExtType(UUID_, o.bytes),
    date: lambda o: ExtType(DATE, _DATE.pack(o.year, o.month, o.day)),
    datetime: _datetime,
    time: _time,
    timedelta: lambda o: ExtType(TIMEDELTA, _SPAN.pack(o.days, o.seconds, o.microseconds)),
    bytearray: lambda o: ExtType(BYTEARRAY, bytes(o)),
}
"""What MessagePack is given instead of an object of a class that it does not have."""

_READ: dict[int, Callable[[bytes], Any]] = {
    MARK: lambda data: MARKS[data[0]],
    BIG_INT: lambda data: int.from_bytes(data, "big", signed=True),
    DECIMAL: lambda data: Decimal(data.decode()),
    COMPLEX: lambda data: complex(*_COMPLEX.unpack(data)),
    UUID_: lambda data: uuid.UUID(bytes=data),
    DATE: lambda data: date(*_DATE.unpack(data)),
    DATETIME: lambda data: _clocked(datetime, (*_DATE.unpack(data[:4]), *_TIME.unpack(data[4:]))),
    TIME: lambda data: _clocked(time, _TIME.unpack(data)),
    TIMEDELTA: lambda data: timedelta(*_SPAN.unpack(data)),
    BYTEARRAY: bytearray,
}


def _clocked(kind: Any, parts: tuple[int, ...]) -> Any:
    return kind(*parts[:-1], fold=parts[-1])


def read_extension(code: int, data: bytes) -> Any:
    read = _READ.get(code)
    if read is None:
        raise ValueError(f"there is no extension {code}")
    return read(data)


def read_leaf(code: int, data: memoryview) -> Any:
    """The same where no array can stand for something else."""
    if code == MARK:
        raise ValueError("a mark in a cell without any")
    return read_extension(code, bytes(data))


def read_array(items: list[Any]) -> Any:
    """What an array stands for."""
    return items[0].make(items[1:]) if items and type(items[0]) is Mark else items

"""The types that a cell can hold in addition to those of MessagePack, and their encoding.

A composite value is an array that starts with a type tag, an extension of one byte; any other value is an extension
of its own. Decoding never looks up a class by name: the types below are the only ones.
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

TAG = 80
"""The extension at the start of an array; its byte is the type of the value."""

BIG_INT, DECIMAL, COMPLEX, UUID_, DATE, DATETIME, TIME, TIMEDELTA, BYTEARRAY = range(1, 10)

_DATE = struct.Struct(">HBB")
_TIME = struct.Struct(">BBBIB")
_SPAN = struct.Struct(">iii")
_COMPLEX = struct.Struct(">dd")


class TypeTag:
    """A decoded type tag: builds the value from the other items of the array."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[list[Any]], Any]) -> None:
        self.make = make


def in_order(items: Iterable[Any]) -> list[Any]:
    """Sort the items of a set, if they are comparable, so that equal sets have equal bytes in every process."""
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
"""Type, its parts, and the constructor. Cells contain the row numbers: add new rows only at the end."""

_AWARE_DATETIME, _AWARE_TIME = len(_WITH_PARTS), len(_WITH_PARTS) + 1

TAGS = [
    *(TypeTag(make) for _, _, make in _WITH_PARTS),
    TypeTag(lambda items: datetime.replace(items[0], tzinfo=items[1])),
    TypeTag(lambda items: time.replace(items[0], tzinfo=items[1])),
]


def _tag(number: int) -> ExtType:
    return ExtType(TAG, bytes([number]))


def _big_int(o: int) -> ExtType:
    return ExtType(BIG_INT, o.to_bytes(o.bit_length() // 8 + 1, "big", signed=True))


def _datetime(o: datetime) -> Any:
    if o.tzinfo is not None:
        return [_tag(_AWARE_DATETIME), o.replace(tzinfo=None), o.tzinfo]
    day = _DATE.pack(o.year, o.month, o.day)
    return ExtType(DATETIME, day + _TIME.pack(o.hour, o.minute, o.second, o.microsecond, o.fold))


def _time(o: time) -> Any:
    if o.tzinfo is not None:
        return [_tag(_AWARE_TIME), o.replace(tzinfo=None), o.tzinfo]
    return ExtType(TIME, _TIME.pack(o.hour, o.minute, o.second, o.microsecond, o.fold))


def _with_parts(number: int, parts: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    tag = _tag(number)
    return lambda o: [tag, *parts(o)]


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
"""How to encode an object of a type that MessagePack lacks."""

_READ: dict[int, Callable[[bytes], Any]] = {
    TAG: lambda data: TAGS[data[0]],
    BIG_INT: lambda data: int.from_bytes(data, "big", signed=True),
    DECIMAL: lambda data: Decimal(data.decode()),
    COMPLEX: lambda data: complex(*_COMPLEX.unpack(data)),
    UUID_: lambda data: uuid.UUID(bytes=data),
    DATE: lambda data: date(*_DATE.unpack(data)),
    DATETIME: lambda data: _with_fold(datetime, (*_DATE.unpack(data[:4]), *_TIME.unpack(data[4:]))),
    TIME: lambda data: _with_fold(time, _TIME.unpack(data)),
    TIMEDELTA: lambda data: timedelta(*_SPAN.unpack(data)),
    BYTEARRAY: bytearray,
}


def _with_fold(kind: Any, parts: tuple[int, ...]) -> Any:
    return kind(*parts[:-1], fold=parts[-1])


def read_extension(code: int, data: bytes) -> Any:
    read = _READ.get(code)
    if read is None:
        raise ValueError(f"unknown extension {code}")
    return read(data)


def read_leaf(code: int, data: memoryview) -> Any:
    """Decode an extension where composite values are not allowed."""
    if code == TAG:
        raise ValueError("a type tag in a cell without composite values")
    return read_extension(code, bytes(data))


def read_array(items: list[Any]) -> Any:
    """Decode an array."""
    return items[0].make(items[1:]) if items and type(items[0]) is TypeTag else items

"""Lenient conversion of JSON values to declared types, compatible with ksqlDB's JSON serde.

A string that contains a number converts to a number, and a number converts to an integer by truncation. Timestamps and
times are milliseconds, dates are days. A string column accepts every value: numbers as written, lists as `[a, b]`,
objects as JSON. Field names match regardless of case, unless the declared name contains lower-case letters.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import orjson
import pyarrow as pa

from potok.records.conversion.convert import ExactNumber, MisfitError, Reading, Rules, describe, misfit, shorten
from potok.records.schemas.ddl_text import print_type
from potok.records.schemas.schema import Schema

_INTEGER = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|NaN|[+-]?Infinity", re.ASCII)
_EXACT_FLOAT = 2**53
_LARGEST_DOUBLE_BITS = 1024
_LONGEST_EXPONENT = 9
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_MS = 86_400_000


class LenientRules:
    """Rules for JSON parsed by `orjson.loads`, or as `ExactNumber` where the text of a number matters.

    If that text matters and is unknown, the conversion fails, and the caller parses the row again with exact numbers.
    """

    def plain(self, arrow: pa.DataType) -> frozenset[type]:
        return Reading.JSON.plain(arrow)

    def converter(self, arrow: pa.DataType) -> Callable[[Any], Any]:
        return _converter(arrow)

    def mapping(self, schema: Schema) -> Callable[[Any], Mapping[Any, Any]]:
        return Reading.JSON.mapping(schema)

    def sequence(self, schema: Schema) -> Callable[[Any], list[Any]]:
        return Reading.JSON.sequence(schema)

    def map_key(self, arrow: pa.DataType) -> Callable[[Any], Any]:
        return Reading.JSON.map_key(arrow)

    def named(self, objects: list[Any], names: tuple[str, ...]) -> list[Any]:
        found: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        out: list[Any] = []
        for obj in objects:
            if obj is None:
                out.append(None)
                continue
            keys = tuple(obj)
            pairs = found.get(keys)
            if pairs is None:
                pairs = found[keys] = _pairs(keys, names)
            out.append({name: obj[key] for name, key in pairs})
        return out


LENIENT: Final[Rules] = LenientRules()


def folds(name: str) -> bool:
    """Return whether a declared name matches in any case: only names without lower-case letters do."""
    return name == name.upper()


def _pairs(keys: tuple[str, ...], names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the key for each name: the exact one, else the last that differs only in case."""
    folded = {key.upper(): key for key in keys}
    exact = set(keys)
    spelled = [(name, name if name in exact else folded.get(name) if folds(name) else None) for name in names]
    return [(name, key) for name, key in spelled if key is not None]


@lru_cache(maxsize=256)
def _converter(arrow: pa.DataType) -> Callable[[Any], Any]:
    schema = Schema.scalar(arrow)
    if pa.types.is_string(arrow):
        return text_of
    if pa.types.is_integer(arrow):
        return _within(schema, 2 ** (arrow.bit_width - 1))
    if pa.types.is_floating(arrow):
        return _floating(schema)
    if pa.types.is_date(arrow):
        return lambda obj: _date(whole_number(obj, schema))
    if pa.types.is_time(arrow):
        return lambda obj: _time(whole_number(obj, schema))
    if pa.types.is_timestamp(arrow):
        return lambda obj: _instant(whole_number(obj, schema), arrow.tz is not None)
    return Reading.JSON.converter(arrow)


def whole_number(obj: Any, schema: Schema) -> int:
    """Convert a number, or a string that contains an integer, to an integer."""
    if isinstance(obj, str):
        if _INTEGER.fullmatch(obj):
            return int(obj)
    elif isinstance(obj, ExactNumber):
        number = _decimal_of(obj)
        # A number with more digits is out of every range, and expanding its exponent could take forever.
        return int(number) if not number or number.adjusted() < 40 else 10**40
    elif isinstance(obj, float):
        if abs(obj) <= _EXACT_FLOAT:
            return int(obj)
    elif isinstance(obj, int) and not isinstance(obj, bool):
        return obj
    raise misfit(schema, obj)


def _within(schema: Schema, limit: int) -> Callable[[Any], int]:
    def convert(obj: Any) -> int:
        number = whole_number(obj, schema)
        if not -limit <= number < limit:
            raise MisfitError(f"{shorten(_spelled(obj))} is out of the range of {print_type(schema)}")
        return number

    return convert


def _floating(schema: Schema) -> Callable[[Any], float]:
    number_of = Reading.JSON.converter(schema.arrow)

    def convert(obj: Any) -> float:
        if isinstance(obj, str) and _DOUBLE.fullmatch(obj.strip()):
            obj = float(obj.strip())
        elif type(obj) is int and obj.bit_length() > _LARGEST_DOUBLE_BITS:
            return math.copysign(math.inf, obj > 0 or -1)
        number: float = number_of(obj)
        return number

    return convert


def _date(days: int) -> dt.date:
    try:
        return dt.date.fromordinal(_EPOCH_DAY + days)
    except (ValueError, OverflowError) as error:
        raise MisfitError(f"{days} days since 1970 are outside the years 1 to 9999") from error


def _time(ms: int) -> dt.time:
    if not 0 <= ms < _DAY_MS:
        raise MisfitError(f"{ms} milliseconds are not a time of day")
    return (_EPOCH + dt.timedelta(milliseconds=ms)).time()


def _instant(ms: int, zoned: bool) -> dt.datetime:
    try:
        at = _EPOCH + dt.timedelta(milliseconds=ms)
    except OverflowError as error:
        raise MisfitError(f"{ms} milliseconds since 1970 are outside the years 1 to 9999") from error
    return at if zoned else at.replace(tzinfo=None)


def text_of(obj: Any) -> str:
    """Convert any JSON value to a string."""
    if isinstance(obj, str):
        try:
            obj.encode()
        except UnicodeEncodeError as error:
            raise MisfitError("expected string, got text with a lone surrogate") from error
        return obj
    if isinstance(obj, list):
        return f"[{', '.join('null' if item is None else text_of(item) for item in obj)}]"
    return _json(obj) if isinstance(obj, dict) else _spelled(obj)


def _json(obj: Any) -> str:
    if isinstance(obj, dict):
        return "{" + ",".join(f"{_json(name)}:{_json(item)}" for name, item in obj.items()) + "}"
    if isinstance(obj, list):
        return f"[{','.join(map(_json, obj))}]"
    if isinstance(obj, str):
        try:
            return orjson.dumps(obj).decode()
        except TypeError as error:
            raise MisfitError("expected string, got text with a lone surrogate") from error
    return "null" if obj is None else _spelled(obj)


def _spelled(obj: Any) -> str:
    if isinstance(obj, bool):
        return str(obj).lower()
    if isinstance(obj, ExactNumber):
        # As written, but with normalized exponents and without negative zero.
        return str(_decimal_of(obj) or abs(_decimal_of(obj)))
    if isinstance(obj, float):
        raise MisfitError(f"the exact text of {describe(obj)} is unknown")
    return str(obj)


def _decimal_of(number: ExactNumber) -> Decimal:
    """Return the number with all its digits. Exponents are limited to 32 bits, as in Java."""
    exponent = number.text.lower().partition("e")[2]
    if len(exponent.lstrip("+-0")) > _LONGEST_EXPONENT:
        raise MisfitError(f"the exponent of {shorten(number.text)} is too large")
    return Decimal(number.text)

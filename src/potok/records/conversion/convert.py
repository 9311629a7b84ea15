"""Convert a Python object to one that Arrow accepts for a type, or raise a `MisfitError` with the reason."""

from __future__ import annotations

import binascii
import dataclasses
import datetime as dt
import enum
import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import orjson
import pyarrow as pa

from potok.records.schemas.ddl_text import print_type
from potok.records.schemas.schema import Schema

_NONE = type(None)
_EXACT_FLOAT = 2**53
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_INTEGER = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)
_LONG_NUMBER = re.compile(rb"[\d.]{16}|\d[eE]-\d{3}")
_DECIMAL_CONTEXT = Context(prec=76, Emax=999_999, Emin=-999_999)


class MisfitError(Exception):
    """An object that does not fit its type. It never leaves this package: it becomes the reason of a bad record."""


class ExactNumber(float):
    """A number of a JSON text together with its text, which an exact decimal needs."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> ExactNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


class Rules(Protocol):
    """Which objects are accepted, and how they are converted."""

    def plain(self, arrow: pa.DataType) -> frozenset[type]:
        """Return the Python types that Arrow converts to `arrow` in the same way as the converter."""
        ...

    def converter(self, arrow: pa.DataType) -> Callable[[Any], Any]:
        """Return a function that converts an object that is not None for Arrow, or raises `MisfitError`."""
        ...

    def mapping(self, schema: Schema) -> Callable[[Any], Mapping[Any, Any]]:
        """Convert an object to a dict, or raise `MisfitError`."""
        ...

    def sequence(self, schema: Schema) -> Callable[[Any], list[Any]]:
        """Convert an object to a list, or raise `MisfitError`."""
        ...

    def map_key(self, arrow: pa.DataType) -> Callable[[Any], Any]:
        """Like `converter`; in JSON every key is text, also that of a number."""
        ...

    def named(self, objects: list[Any], names: tuple[str, ...]) -> list[Any]:
        """Return dicts, or None, with their items under the field names of a struct."""
        ...


class Reading(enum.Enum):
    """The origin of objects decides which types are accepted.

    From JSON, an instant is ISO text or a number of milliseconds, bytes are base64 text and a decimal is a number
    or text. From Python, each is an object of its own type, and text is only text.
    """

    JSON = "json"
    PYTHON = "python"

    def plain(self, arrow: pa.DataType) -> frozenset[type]:
        return _plain(arrow, self)

    def converter(self, arrow: pa.DataType) -> Callable[[Any], Any]:
        return _converter(arrow, self)

    def mapping(self, schema: Schema) -> Callable[[Any], Mapping[Any, Any]]:
        def convert(obj: Any) -> Mapping[Any, Any]:
            if isinstance(obj, dict):
                return obj
            if self is Reading.PYTHON:
                if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
                    return {field.name: getattr(obj, field.name) for field in dataclasses.fields(obj)}
                if isinstance(obj, Mapping):
                    return dict(obj)
            raise misfit(schema, obj)

        return convert

    def sequence(self, schema: Schema) -> Callable[[Any], list[Any]]:
        kinds = list if self is Reading.JSON else (list, tuple, set, frozenset)

        def convert(obj: Any) -> list[Any]:
            if isinstance(obj, kinds):
                # A set has no order, and a record must always encode to the same bytes.
                return sorted(obj, key=repr) if isinstance(obj, set | frozenset) else list(obj)
            raise misfit(schema, obj)

        return convert

    def map_key(self, arrow: pa.DataType) -> Callable[[Any], Any]:
        convert = _converter(arrow, self)
        if pa.types.is_string(arrow) or self is Reading.PYTHON:
            return convert

        def from_text(key: Any) -> Any:
            return convert(int(key) if _INTEGER.fullmatch(key) else key)

        return from_text

    def named(self, objects: list[Any], names: tuple[str, ...]) -> list[Any]:
        return objects


@lru_cache(maxsize=256)
def _plain(arrow: pa.DataType, reading: Reading) -> frozenset[type]:
    if pa.types.is_string(arrow):
        return frozenset({str, _NONE})
    if pa.types.is_boolean(arrow):
        return frozenset({bool, _NONE})
    if pa.types.is_integer(arrow):
        return frozenset({int, _NONE})
    if pa.types.is_float64(arrow):
        return frozenset({float, _NONE})
    if pa.types.is_binary(arrow) and reading is Reading.PYTHON:
        return frozenset({bytes, _NONE})
    return frozenset({_NONE})


@lru_cache(maxsize=256)
def _converter(arrow: pa.DataType, reading: Reading) -> Callable[[Any], Any]:
    schema = Schema.scalar(arrow)
    from_json = reading is Reading.JSON
    if pa.types.is_string(arrow):
        return _text(schema)
    if pa.types.is_boolean(arrow):
        return _boolean(schema)
    if pa.types.is_integer(arrow):
        return _integer(schema)
    if pa.types.is_floating(arrow):
        return _floating(schema)
    if pa.types.is_decimal(arrow):
        return _decimal(schema, from_json)
    if pa.types.is_binary(arrow):
        return _bytes(schema, from_json)
    if pa.types.is_date(arrow):
        return _date(schema, from_json)
    if pa.types.is_time(arrow):
        return _time(schema, from_json)
    return _timestamp(schema, from_json)


def _text(schema: Schema) -> Callable[[Any], Any]:
    def convert(obj: Any) -> str:
        if not isinstance(obj, str):
            raise misfit(schema, obj)
        try:
            str.encode(obj)
        except UnicodeEncodeError as error:
            raise MisfitError("expected string, got text with a lone surrogate") from error
        return str.__str__(obj)  # the text of an enum member, not its name

    return convert


def _boolean(schema: Schema) -> Callable[[Any], Any]:
    def convert(obj: Any) -> bool:
        if isinstance(obj, bool | np.bool_):
            return bool(obj)
        raise misfit(schema, obj)

    return convert


def _integer(schema: Schema) -> Callable[[Any], Any]:
    limit: int = 2 ** (schema.arrow.bit_width - 1)

    def convert(obj: Any) -> int:
        obj = obj.item() if isinstance(obj, np.number) else obj
        if isinstance(obj, bool) or not isinstance(obj, int | float):
            raise misfit(schema, obj)
        if isinstance(obj, float) and not (obj.is_integer() and abs(obj) <= _EXACT_FLOAT):
            raise misfit(schema, obj)
        number = int(obj)
        if not -limit <= number < limit:
            raise MisfitError(f"{spelled(number)} is out of the range of {print_type(schema)}")
        return number

    return convert


def _floating(schema: Schema) -> Callable[[Any], Any]:
    single = pa.types.is_float32(schema.arrow)
    largest = float.fromhex("0x1.fffffep+127")

    def convert(obj: Any) -> float:
        obj = obj.item() if isinstance(obj, np.number) else obj
        if isinstance(obj, bool) or not isinstance(obj, int | float | Decimal):
            raise misfit(schema, obj)
        try:
            number = float(obj)
        except OverflowError as error:
            raise MisfitError(f"{spelled(obj)} is out of the range of double") from error
        if single and math.isfinite(number) and abs(number) > largest:
            raise MisfitError(f"{number!r} is out of the range of float")
        return number

    return convert


def _decimal(schema: Schema, from_json: bool) -> Callable[[Any], Any]:
    precision, scale = schema.arrow.precision, schema.arrow.scale
    unit = Decimal(1).scaleb(-scale)

    def number_of(obj: Any) -> Decimal:
        if isinstance(obj, Decimal):
            return obj
        if isinstance(obj, ExactNumber):
            return Decimal(obj.text)
        if isinstance(obj, int) and not isinstance(obj, bool):
            return Decimal(obj)
        if isinstance(obj, float):
            return Decimal(repr(obj))
        if from_json and isinstance(obj, str) and _NUMBER.fullmatch(obj):
            return Decimal(obj)
        raise misfit(schema, obj)

    def convert(obj: Any) -> Decimal:
        try:
            number = number_of(obj)
            exact = number.quantize(unit, context=_DECIMAL_CONTEXT)
        except InvalidOperation as error:
            raise MisfitError(f"{spelled(obj)} does not fit {print_type(schema)}") from error
        if exact != number or (exact and exact.adjusted() + scale + 1 > precision):
            raise MisfitError(f"{spelled(obj)} does not fit {print_type(schema)}")
        return exact

    return convert


def _bytes(schema: Schema, from_json: bool) -> Callable[[Any], Any]:
    def convert(obj: Any) -> bytes:
        if not from_json and isinstance(obj, bytes | bytearray | memoryview):
            return bytes(obj)
        if from_json and isinstance(obj, str):
            try:
                return binascii.a2b_base64(obj, strict_mode=True)
            except (binascii.Error, ValueError) as error:
                raise MisfitError(f"expected base64 text, got {describe(obj)}") from error
        raise misfit(schema, obj)

    return convert


def _date(schema: Schema, from_json: bool) -> Callable[[Any], Any]:
    def convert(obj: Any) -> dt.date:
        if not from_json and isinstance(obj, dt.date) and not isinstance(obj, dt.datetime):
            return obj
        if from_json and isinstance(obj, str):
            try:
                return dt.date.fromisoformat(obj)
            except ValueError as error:
                raise MisfitError(f"expected a date such as 2025-01-31, got {describe(obj)}") from error
        raise misfit(schema, obj)

    return convert


def _time(schema: Schema, from_json: bool) -> Callable[[Any], Any]:
    def convert(obj: Any) -> dt.time:
        if from_json and isinstance(obj, str):
            try:
                at = dt.time.fromisoformat(obj)
            except ValueError as error:
                raise MisfitError(f"expected a time such as 23:59:30.125, got {describe(obj)}") from error
        elif not from_json and isinstance(obj, dt.time):
            at = obj
        else:
            raise misfit(schema, obj)
        if at.tzinfo is not None or at.microsecond % 1000:
            raise MisfitError(f"a time is local and has whole milliseconds, {at.isoformat()} is not so")
        return at.replace(fold=0)

    return convert


def _timestamp(schema: Schema, from_json: bool) -> Callable[[Any], Any]:
    zoned = schema.arrow.tz is not None

    def instant(obj: Any) -> dt.datetime:
        if not from_json and isinstance(obj, dt.datetime):
            return obj
        if from_json and isinstance(obj, str):
            return dt.datetime.fromisoformat(obj)
        if from_json and isinstance(obj, int) and not isinstance(obj, bool):
            return _EPOCH + dt.timedelta(milliseconds=obj)
        if from_json and isinstance(obj, float) and obj.is_integer() and abs(obj) <= _EXACT_FLOAT:
            return _EPOCH + dt.timedelta(milliseconds=int(obj))
        raise misfit(schema, obj)

    def convert(obj: Any) -> dt.datetime:
        try:
            at = instant(obj)
            # Without a zone, an instant is in UTC: its meaning must not depend on the machine.
            at = at.replace(tzinfo=dt.UTC) if at.tzinfo is None else at.astimezone(dt.UTC)
        except (ValueError, OverflowError) as error:
            raise MisfitError(f"expected ISO text or milliseconds, got {describe(obj)}") from error
        return at if zoned else at.replace(tzinfo=None)

    return convert


def misfit(schema: Schema, obj: Any) -> MisfitError:
    """Return the error for an object of another type."""
    return MisfitError(f"expected {print_type(schema)}, got {describe(obj)}")


def describe(obj: Any) -> str:
    """Return an object as the reason of a bad record names it: `string "abc"`, `number 1.5`, `an object`."""
    if obj is None:
        return "null"
    if isinstance(obj, str):
        return f'string "{spelled(obj)}"'
    if isinstance(obj, bool):
        return f"boolean {str(obj).lower()}"
    if isinstance(obj, int | float | Decimal):
        return f"number {spelled(obj)}"
    if isinstance(obj, dict):
        return "an object"
    if isinstance(obj, list | tuple):
        return "a list"
    return f"{type(obj).__name__} {spelled(obj, repr)}"


def spelled(obj: Any, text_of: Callable[[Any], str] = str, longest: int = 60) -> str:
    """Return the start of an object's text. A user's object may return anything from `__repr__`, also text that
    cannot be encoded; and Python refuses to print an integer of thousands of digits.
    """
    try:
        text = text_of(obj)
    except Exception as error:  # noqa: BLE001 - whatever it is, the record is bad for another reason
        text = f"({type(error).__name__} while it was written)"
    return shorten(str.encode(text, "utf-8", "backslashreplace").decode(), longest)


def shorten(text: str, longest: int = 60) -> str:
    """Return the start of a text, for messages."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def loads_exact(text: bytes) -> Any:
    """Like `orjson.loads`, but a number that a double cannot represent is an `ExactNumber`, and an integer has
    any size.
    """
    obj = orjson.loads(text)
    # Fifteen digits survive a round trip through a double, unless the number is too close to zero, so only texts
    # with longer numbers or long negative exponents are parsed twice.
    return obj if _LONG_NUMBER.search(text) is None else json.loads(text.decode(), parse_float=ExactNumber)

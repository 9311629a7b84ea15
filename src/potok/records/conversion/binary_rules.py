"""How binary formats represent instants and decimals: as counts and bytes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from potok.records.conversion.convert import MisfitError, Reading, Rules
from potok.records.conversion.lenient import LENIENT
from potok.records.schemas.ddl_text import print_type
from potok.records.schemas.schema import Schema

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY = dt.date(1970, 1, 1)
_MILLISECOND = dt.timedelta(milliseconds=1)


class CountedRules:
    """Rules for objects in which every instant, date and time is a number and every decimal its unscaled bytes."""

    def plain(self, arrow: pa.DataType) -> frozenset[type]:
        return Reading.PYTHON.plain(arrow)

    def converter(self, arrow: pa.DataType) -> Callable[[Any], Any]:
        if pa.types.is_temporal(arrow):
            return LENIENT.converter(arrow)
        return _unscaled(arrow) if pa.types.is_decimal(arrow) else Reading.PYTHON.converter(arrow)

    def mapping(self, schema: Schema) -> Callable[[Any], Mapping[Any, Any]]:
        return Reading.PYTHON.mapping(schema)

    def sequence(self, schema: Schema) -> Callable[[Any], list[Any]]:
        return Reading.PYTHON.sequence(schema)

    def map_key(self, arrow: pa.DataType) -> Callable[[Any], Any]:
        return Reading.PYTHON.map_key(arrow)

    def named(self, objects: list[Any], names: tuple[str, ...]) -> list[Any]:
        return objects


COUNTED: Final[Rules] = CountedRules()


@lru_cache(maxsize=64)
def _unscaled(arrow: pa.DataType) -> Callable[[Any], Decimal]:
    def convert(obj: Any) -> Decimal:
        digits = str(int.from_bytes(obj, "big", signed=True)) if len(obj) <= 32 else "9" * 99
        if len(digits.lstrip("-")) > arrow.precision:
            raise MisfitError(f"a number of more digits does not fit {print_type(Schema.scalar(arrow))}")
        # By text, because arithmetic would round to the precision of this thread.
        return Decimal(f"{digits}E-{arrow.scale}")

    return convert


def counter(arrow: pa.DataType) -> Callable[[Any], Any] | None:
    """Return the inverse conversion, for an object of this type that is not None; None for types that are written
    unchanged.
    """
    if pa.types.is_timestamp(arrow):
        # Rounded down, also before 1970.
        return lambda at: (at.replace(tzinfo=dt.UTC) - _EPOCH) // _MILLISECOND
    if pa.types.is_date(arrow):
        return lambda day: (day - _DAY).days
    if pa.types.is_time(arrow):
        return lambda at: (at.hour * 60 + at.minute) * 60_000 + at.second * 1000 + at.microsecond // 1000
    return unscaled_bytes if pa.types.is_decimal(arrow) else None


def unscaled_bytes(number: Decimal) -> bytes:
    """Return the unscaled integer of a decimal in the fewest big-endian bytes."""
    sign, digits, _ = number.as_tuple()
    whole = int("".join(map(str, digits))) * (-1 if sign else 1)
    return whole.to_bytes((whole + (whole < 0)).bit_length() // 8 + 1, "big", signed=True)

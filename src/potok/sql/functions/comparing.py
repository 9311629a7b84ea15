"""Equality and order of values in functions and aggregates.

As in ksqlDB, NaN equals NaN and is greater than every number, and -0.0 is less than 0.0. Strings are ordered by code
point, as by the operators `<` and `>`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.types import BIGINT, BOOLEAN, BYTES, DATE, DOUBLE, INT, TIME, TIMESTAMP, VARCHAR

Ints = npt.NDArray[np.int64]

_MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_ORDERED = frozenset([BOOLEAN, INT, BIGINT, DOUBLE, VARCHAR, BYTES, DATE, TIME, TIMESTAMP])


def has_order(type_: pa.DataType) -> bool:
    """Return whether values of a type can be sorted: all but arrays, maps and structs."""
    return type_ in _ORDERED or bool(pa.types.is_decimal(type_))


def is_nested(type_: pa.DataType) -> bool:
    return any(test(type_) for test in (pa.types.is_list, pa.types.is_map, pa.types.is_struct))


def ordered(values: pa.Array) -> pa.Array:
    """Return a column that Arrow sorts, finds and compares as ksqlDB does: for doubles, integers in the same order."""
    if values.type != DOUBLE:
        return values
    missing = values.is_null().to_numpy(zero_copy_only=False)
    numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False)
    # NaN has many bit patterns; use one.
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    return pa.array(_turn(bits), BIGINT, mask=missing)


def unordered(keys: pa.Array) -> pa.Array:
    """Return the doubles from which `ordered` made these integers."""
    missing = keys.is_null().to_numpy(zero_copy_only=False)
    bits = keys.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(_turn(bits).view(np.float64), DOUBLE, mask=missing)


def _turn(bits: Ints) -> Ints:
    # The bits of a negative double increase as its value decreases.
    turned: Ints = bits ^ ((bits >> 63) & _MAGNITUDE)
    return turned


def codes(columns: Sequence[pa.Array]) -> list[Ints]:
    """Return equal numbers for equal values of columns of one type, from 0 on; -1 for null."""
    together = pa.concat_arrays(list(columns))
    if is_nested(together.type):
        together = pa.array([None if value is None else identity(value) for value in together.to_pylist()], VARCHAR)
    encoded = ordered(together).dictionary_encode()
    found = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum([len(column) for column in columns])
    return np.split(found, ends[:-1])


def identity(value: Any) -> str:
    """Return a string that is equal exactly for equal values of one type, as a key in aggregation state."""
    if isinstance(value, str):
        return "'" + value
    return repr(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((repr(_plain(key)), _plain(item)) for key, item in value.items())
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):
            return _plain(dict(value))
        return [_plain(item) for item in value]
    return value


def sort_key(type_: pa.DataType) -> Callable[[Any], Any]:
    """Return the sort key for Python values of a type."""
    return _double_key if type_ == DOUBLE else _itself


def _itself(value: Any) -> Any:
    return value


def _double_key(value: float) -> tuple[bool, float, float]:
    return (True, 0.0, 0.0) if math.isnan(value) else (False, value, math.copysign(1.0, value))

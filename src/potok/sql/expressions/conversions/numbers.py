"""Convert numbers with Java semantics: integers wrap, doubles saturate, decimals round half up."""

from __future__ import annotations

import decimal as python_decimal
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.function import Context
from potok.sql.types import BIGINT, DOUBLE, INT, type_name

_EXACT_DIGITS = 15
"""Every integer with this many digits is exact as a double."""
_EXACT_POWERS = 22
"""So are the powers of ten up to this one."""

WIDE = python_decimal.Context(prec=200, rounding=python_decimal.ROUND_HALF_UP)


def note(context: Context, rows: pa.Array, reason: str) -> None:
    """Report the rows of a mask as failed."""
    for row in np.flatnonzero(pc.fill_null(rows, False).to_numpy(zero_copy_only=False)).tolist():
        context.failures.setdefault(row, reason)


def by_row(column: pa.Array, to: pa.DataType, function: Callable[[Any], Any], context: Context) -> pa.Array:
    """Apply a Python function to each value; a value for which it raises is NULL and reported."""
    found: list[Any] = []
    for row, value in enumerate(column.to_pylist()):
        try:
            found.append(None if value is None else function(value))
        except (ValueError, ArithmeticError) as error:
            context.failures.setdefault(row, str(error) or type(error).__name__)
            found.append(None)
    return pa.array(found, to)


def cast_number(column: pa.Array, to: pa.DataType, context: Context) -> pa.Array:
    if pa.types.is_decimal(to):
        return by_row(column, to, _rounded_to(to), context) if column.type == DOUBLE else fit(column, to, context)
    if to == DOUBLE:
        return decimal_to_double(column) if pa.types.is_decimal(column.type) else pc.cast(column, DOUBLE, safe=False)
    if column.type == DOUBLE:
        return _saturated(column, to)
    if pa.types.is_decimal(column.type):
        column = pc.cast(column, BIGINT, safe=False)
    return pc.cast(column, to, safe=False)


def fit(column: pa.Array, to: pa.DataType, context: Context) -> pa.Array:
    """Convert exact numbers to a decimal type: round half up, NULL if there are too many digits before the decimal
    point."""
    if column.type in (INT, BIGINT):
        column = column.cast(pa.decimal128(19, 0))
    from_ = column.type
    if from_.scale <= to.scale and from_.precision - from_.scale <= to.precision - to.scale:
        return column.cast(to)
    if from_.scale > to.scale:
        # One more digit before the decimal point: 9.9 rounds to 10.
        column = column.cast(pa.decimal256(from_.precision + 1, from_.scale))
        column = pc.round(column, ndigits=to.scale, round_mode="half_towards_infinity")
    column = column.cast(pa.decimal256(76, to.scale))
    limit = pa.scalar(Decimal(10) ** (to.precision - to.scale), column.type)
    over = pc.greater_equal(pc.abs(column), limit)
    if pc.any(over).as_py():
        note(context, over, f"the number does not fit into {type_name(to)}")
        column = pc.if_else(over, pa.scalar(None, column.type), column)
    return column.cast(to)


def decimal_to_double(column: pa.Array) -> pa.Array:
    """Return the nearest doubles. Arrow's own cast is off by one in the last place for many short decimals."""
    type_ = column.type
    if type_.precision > _EXACT_DIGITS or type_.scale > _EXACT_POWERS:
        return column.cast(pa.string()).cast(DOUBLE)
    whole = pa.Array.from_buffers(
        pa.decimal128(type_.precision, 0), len(column), column.buffers(), column.null_count, column.offset
    )
    return pc.divide(whole.cast(BIGINT).cast(DOUBLE), float(10**type_.scale))


def _saturated(column: pa.Array, to: pa.DataType) -> pa.Array:
    bits = to.bit_width
    values = np.trunc(
        np.nan_to_num(column.fill_null(0.0).to_numpy(zero_copy_only=False), posinf=np.inf, neginf=-np.inf)
    )
    low, high = values <= -(2.0 ** (bits - 1)), values >= 2.0 ** (bits - 1)
    whole = np.where(low | high, 0.0, values).astype(to.to_pandas_dtype())
    info = np.iinfo(whole.dtype)
    whole[low], whole[high] = info.min, info.max
    return pa.array(whole, to, mask=column.is_null().to_numpy(zero_copy_only=False))


def _rounded_to(to: pa.DataType) -> Callable[[float], Decimal]:
    """Convert doubles, rounding twice: the exact value to the digits of the type, then to the scale."""
    first = python_decimal.Context(prec=to.precision, rounding=python_decimal.ROUND_HALF_UP)

    def rounded(value: float) -> Decimal:
        if not np.isfinite(value):
            raise ValueError(f"{value} is not a valid {type_name(to)}")
        return quantized(first.create_decimal_from_float(value), to)

    return rounded


def quantized(value: Decimal, to: pa.DataType) -> Decimal:
    """Convert a decimal to its type, rounded half up; raises if it does not fit."""
    found = value.quantize(Decimal(1).scaleb(-to.scale), context=WIDE)
    if abs(found) >= Decimal(10) ** (to.precision - to.scale):
        raise ValueError(f"{value:f} does not fit into {type_name(to)}")
    return found

"""CEIL, FLOOR, ROUND and TRUNC. Halves are rounded up, towards positive infinity, as in ksqlDB."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.constants import constant
from potok.sql.functions.function import (
    Accepted,
    Compute,
    Context,
    Overload,
    ScalarFunction,
    SqlFunction,
    Types,
    by_arrow,
    each_row,
    takes,
)
from potok.sql.types import BIGINT, DOUBLE, INT, MAX_PRECISION, NULL

_EXACT: Final = decimal.Context(prec=800)
"""Wide enough for any DOUBLE at any relevant number of decimal places."""
_PLACES: Final = 400

Quantize = Callable[[Decimal, int], Decimal]


def takes_decimal(
    *others: pa.DataType, result: Callable[[pa.DataType], pa.DataType] = lambda type_: type_
) -> Callable[[Types], Accepted | None]:
    """Accept a DECIMAL of any precision, then fixed types; by default, the result has the type of the DECIMAL."""

    def accept(types: Types) -> Accepted | None:
        if len(types) != 1 + len(others) or not isinstance(types[0], pa.DataType) or not pa.types.is_decimal(types[0]):
            return None
        if any(type_ not in (other, NULL) for type_, other in zip(types[1:], others, strict=True)):
            return None
        return Accepted((types[0], *others), result(types[0]))

    return accept


def half_up(value: Decimal, places: int) -> Decimal:
    mode = decimal.ROUND_HALF_UP if value > 0 else decimal.ROUND_HALF_DOWN
    return _quantize(value, places, mode)


def _down(value: Decimal, places: int) -> Decimal:
    return _quantize(value, places, decimal.ROUND_DOWN)


def _quantize(value: Decimal, places: int, mode: str) -> Decimal:
    if places > _PLACES:
        return value
    return value.quantize(Decimal(1).scaleb(-max(places, -_PLACES)), rounding=mode, context=_EXACT)


def _fitted(value: Decimal, type_: pa.DataType) -> Decimal:
    if abs(value) >= Decimal(10) ** (type_.precision - type_.scale):
        raise OverflowError(f"{value:f} does not fit DECIMAL({type_.precision}, {type_.scale})")
    return value.quantize(Decimal(1).scaleb(-type_.scale), context=_EXACT)


def _to_bigint(values: Any) -> Any:
    """Convert whole doubles as Java casts them: NaN is 0, and out-of-range values saturate."""
    inside = (values > -(2.0**63)) & (values < 2.0**63)
    whole = np.where(inside, values, 0.0).astype(np.int64)
    limits = np.where(values > 0, np.int64(2**63 - 1), np.int64(-(2**63)))
    return np.where(inside | np.isnan(values), whole, limits)


def _whole(round_: Callable[[Any], Any]) -> Compute:
    def compute(arguments: Sequence[Any], _: int, result: pa.DataType, __: Context) -> pa.Array:
        (column,) = arguments
        with np.errstate(all="ignore"):
            values = _to_bigint(round_(column.to_numpy(zero_copy_only=False)))
        return pa.array(values, result, mask=column.is_null().to_numpy(zero_copy_only=False))

    return compute


def _half_up_whole(values: Any) -> Any:
    below = np.floor(values)
    return below + (values - below >= 0.5)


def _of_double(quantize: Quantize) -> Callable[[float, int], float]:
    """Round by the shortest decimal that reads as the same double, so that 1.005 is a half at two places."""

    def rounded(value: float, places: int) -> float:
        if not np.isfinite(value):
            raise ValueError(f"{value} has no decimal places")
        return float(quantize(Decimal(repr(value)), places)) + 0.0

    return rounded


def _places(quantize: Quantize, near: Callable[[Any], Any], doubtful: float) -> Compute:
    """Round DOUBLE to a number of places. With a constant number of places, rows are vectorized, except those so close
    to the boundary (`doubtful` is its fraction) that only their decimal text can decide."""
    by_row = each_row(_of_double(quantize))

    def compute(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        column, places = arguments[0], constant(arguments[1])
        if places is None or not 0 <= places <= 9:
            return by_row(arguments, rows, result, context)
        values = column.to_numpy(zero_copy_only=False)
        with np.errstate(all="ignore"):
            scaled = values * 10.0**places
            border = np.abs(np.abs(scaled - np.floor(scaled)) - doubtful)
            unsure = ~((np.abs(scaled) < 2.0**31) & (border > 1e-6) & (border < 1 - 1e-6))
            found = near(scaled) / 10.0**places + 0.0
        missing = column.is_null().to_numpy(zero_copy_only=False)
        quick = pa.array(found, result, mask=missing)
        numbers = np.flatnonzero(unsure & ~missing)
        if not len(numbers):
            return quick
        return _patched(quick, numbers, [a.take(pa.array(numbers)) for a in arguments], by_row, context)

    return compute


def _patched(
    quick: pa.Array, numbers: Any, arguments: Sequence[pa.Array], by_row: Compute, context: Context
) -> pa.Array:
    """Return the column with the rows of these `numbers` computed one by one."""
    noted = Context(context.now_ms)
    slow = by_row(arguments, len(numbers), quick.type, noted)
    context.failures.update({int(numbers[row]): reason for row, reason in noted.failures.items()})
    mask = np.zeros(len(quick), bool)
    mask[numbers] = True
    return pc.replace_with_mask(quick, pa.array(mask), slow)


def _decimal(kernel: Callable[[pa.Array, int], pa.Array], quantize: Quantize) -> Compute:
    """Round DECIMAL with an Arrow kernel; row by row if a value rounds up to more digits than its type has."""

    def compute(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        column = arguments[0]
        places = constant(arguments[1]) if len(arguments) > 1 else 0
        if places is not None and abs(places) <= _PLACES and column.type.precision < MAX_PRECISION:
            # One spare digit: without it, Arrow silently rounds 9.99 to 0.00.
            roomy = column.cast(pa.decimal128(column.type.precision + 1, column.type.scale))
            try:
                return kernel(roomy, places).cast(result)
            except pa.ArrowInvalid:
                pass
        by_row = each_row(lambda value, *given: _fitted(quantize(value, given[0] if given else 0), result))
        return by_row(arguments, rows, result, context)

    return compute


def _kernel(mode: str) -> Callable[[pa.Array, int], pa.Array]:
    return lambda column, places: pc.round(column, ndigits=places, round_mode=mode)


def _rounded_type(type_: pa.DataType) -> pa.DataType:
    """One more digit before the decimal point, because 9.9 becomes 10."""
    return pa.decimal128(min(MAX_PRECISION, type_.precision - type_.scale + (type_.scale > 0)), 0)


def _cut_type(type_: pa.DataType) -> pa.DataType:
    return pa.decimal128(max(1, type_.precision - type_.scale), 0)


def _to_whole(name: str, kernel: Callable[[pa.Array], pa.Array], mode: str, summary: str, example: str) -> SqlFunction:
    by_decimal = _decimal(lambda column, _: kernel(column), lambda value, _: _quantize(value, 0, mode))
    same = by_arrow(lambda x: x)
    return ScalarFunction(
        name,
        "math",
        summary,
        (
            Overload(f"{name}(x INT)", takes(INT, result=INT), same),
            Overload(f"{name}(x BIGINT)", takes(BIGINT, result=BIGINT), same),
            Overload(f"{name}(x DECIMAL)", takes_decimal(), by_decimal),
            Overload(f"{name}(x DOUBLE)", takes(DOUBLE, result=DOUBLE), by_arrow(kernel)),
        ),
        example=example,
    )


FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    _to_whole("CEIL", pc.ceil, decimal.ROUND_CEILING, "The least whole number that is not less.", "CEIL(1.2)  -- 2.0"),
    _to_whole(
        "FLOOR", pc.floor, decimal.ROUND_FLOOR, "The greatest whole number that is not greater.", "FLOOR(1.8)  -- 1.0"
    ),
    ScalarFunction(
        "ROUND",
        "math",
        "The nearest number with so many decimal places, 0 by default; a negative number of places rounds left of the "
        "point. Halves are rounded up: -1.5 is -1. A DOUBLE without a number of places gives a BIGINT.",
        (
            Overload("ROUND(x BIGINT)", takes(BIGINT, result=BIGINT), by_arrow(lambda x: x)),
            Overload(
                "ROUND(x DECIMAL)",
                takes_decimal(result=_rounded_type),
                _decimal(_kernel("half_up"), half_up),
            ),
            Overload("ROUND(x DOUBLE)", takes(DOUBLE, result=BIGINT), _whole(_half_up_whole)),
            Overload("ROUND(x DECIMAL, places INT)", takes_decimal(INT), _decimal(_kernel("half_up"), half_up)),
            Overload(
                "ROUND(x DOUBLE, places INT)",
                takes(DOUBLE, INT, result=DOUBLE),
                _places(half_up, _half_up_whole, 0.5),
            ),
        ),
        example="ROUND(2.345, 2)  -- 2.350",
    ),
    ScalarFunction(
        "TRUNC",
        "math",
        "The number truncated to so many decimal places, 0 by default. A DOUBLE without a number of places gives a "
        "BIGINT.",
        (
            Overload("TRUNC(x BIGINT)", takes(BIGINT, result=BIGINT), by_arrow(lambda x: x)),
            Overload(
                "TRUNC(x DECIMAL)",
                takes_decimal(result=_cut_type),
                _decimal(_kernel("towards_zero"), _down),
            ),
            Overload("TRUNC(x DOUBLE)", takes(DOUBLE, result=BIGINT), _whole(np.trunc)),
            Overload("TRUNC(x DECIMAL, places INT)", takes_decimal(INT), _decimal(_kernel("towards_zero"), _down)),
            Overload(
                "TRUNC(x DOUBLE, places INT)",
                takes(DOUBLE, INT, result=DOUBLE),
                _places(_down, np.trunc, 0.0),
            ),
        ),
        example="TRUNC(2.789, 1)  -- 2.700",
    ),
)

"""`+ - * / %` over columns with Java semantics: integers wrap, doubles overflow to infinity, decimals round half up."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.expressions.conversions.numbers import WIDE, note, quantized
from potok.sql.expressions.frame import Values, reserve_spread, spread
from potok.sql.functions.function import Context
from potok.sql.types import DOUBLE, MAX_PRECISION, VARCHAR

_KERNELS: Final = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_PYTHON: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    "+": WIDE.add,
    "-": WIDE.subtract,
    "*": WIDE.multiply,
    "/": WIDE.divide,
    "%": WIDE.remainder,
}
BY_ZERO: Final = "division by zero"


def calculate(op: str, left: Values, right: Values, rows: int, result: pa.DataType, context: Context) -> Values:
    """Apply an operator to two columns, one of which may be a scalar. Division by zero is NULL and reported."""
    if result == VARCHAR:
        for part in (left, right):
            reserve_spread(part, rows)
        return pc.binary_join_element_wise(left, right, "")
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        left = spread(left, rows)
    if pa.types.is_decimal(result):
        return _decimals(op, left, right, rows, result, context)
    if op in _KERNELS:
        return _KERNELS[op](left, right)
    if result == DOUBLE:
        return pc.divide(left, right) if op == "/" else _double_remainder(left, right, rows)
    right = _without_zeros(left, right, rows, context)
    found = _quotient(left, right, result)
    return found if op == "/" else pc.subtract(left, pc.multiply(found, right))


def negate(operand: Values) -> Values:
    return pc.negate(operand)


def _without_zeros(left: Values, right: Values, rows: int, context: Context) -> Values:
    """Return the divisors, NULL where they are zero."""
    zero = pc.equal(right, pa.scalar(0, right.type))
    if pc.any(zero).as_py() if isinstance(zero, pa.Array) else zero.as_py():
        note(context, pc.and_(spread(zero, rows), spread(pc.is_valid(left), rows)), BY_ZERO)
        return pc.if_else(zero, pa.scalar(None, right.type), right)
    return right


def _quotient(left: Values, right: Values, type_: pa.DataType) -> Values:
    """Divide, truncating towards zero. The smallest number divided by -1 wraps to itself; Arrow returns 0."""
    found = pc.divide(left, right)
    if isinstance(right, pa.Scalar) and right.as_py() != -1:
        return found
    least = pa.scalar(-(2 ** (type_.bit_width - 1)), type_)
    wraps = pc.and_(pc.equal(left, least), pc.equal(right, pa.scalar(-1, type_)))
    return pc.if_else(wraps, least, found) if pc.any(wraps).as_py() else found


def _double_remainder(left: Values, right: Values, rows: int) -> pa.Array:
    left, right = spread(left, rows), spread(right, rows)
    missing = pc.or_(left.is_null(), right.is_null()).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        found = np.fmod(left.to_numpy(zero_copy_only=False), right.to_numpy(zero_copy_only=False))
    return pa.array(found, DOUBLE, mask=missing)


def _decimals(op: str, left: Values, right: Values, rows: int, result: pa.DataType, context: Context) -> pa.Array:
    if op in "/%":
        right = _without_zeros(left, right, rows, context)
    if op in _KERNELS and _exact(op, left.type, right.type) == (result.precision, result.scale):
        return _KERNELS[op](left, right)
    if op == "/":
        found = _divided(left, right, result)
        if found is not None:
            return found
    function = _PYTHON[op]
    pairs = zip(spread(left, rows).to_pylist(), spread(right, rows).to_pylist(), strict=True)
    values: list[Any] = []
    for row, (one, other) in enumerate(pairs):
        try:
            values.append(None if one is None or other is None else quantized(function(one, other), result))
        except (ValueError, ArithmeticError) as error:
            context.failures.setdefault(row, str(error))
            values.append(None)
    return pa.array(values, result)


def _exact(op: str, left: pa.DataType, right: pa.DataType) -> tuple[int, int] | None:
    """Return the precision and scale of Arrow's result; None if it would need too many digits."""
    if op == "*":
        precision, scale = left.precision + right.precision + 1, left.scale + right.scale
    else:
        scale = max(left.scale, right.scale)
        precision = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
    return (precision, scale) if precision <= MAX_PRECISION else None


def _divided(left: Values, right: Values, result: pa.DataType) -> pa.Array | None:
    """Divide with one more digit than required, truncated by Arrow, then round: the same as rounding directly. None if
    Arrow would need too many digits, or if the result may exceed its type."""
    (precision, scale), divisor = (left.type.precision, left.type.scale), right.type
    if precision - scale + divisor.scale + max(6, scale + divisor.precision + 1) > MAX_PRECISION:
        return None
    more = max(0, result.scale - scale - divisor.precision + divisor.scale)
    scale += more
    digits = precision + more + divisor.precision + divisor.scale + 2
    kind = pa.decimal128 if digits < MAX_PRECISION else pa.decimal256
    found = pc.divide(left.cast(kind(precision + more, scale)), right.cast(kind(divisor.precision, divisor.scale)))
    found = found.cast(kind(found.type.precision + 1, found.type.scale))
    return pc.round(found, ndigits=result.scale, round_mode="half_towards_infinity").cast(result)

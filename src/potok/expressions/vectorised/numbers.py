"""Arithmetic that agrees with Python's ints and floats, or returns the rows in which it may not."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.python_types import EXACT_FLOAT, INT64_MAX, INT64_MIN
from potok.expressions.vectorised.vector import Data, Mask, Vector, cast, either, required, where

NEAR_OVERFLOW: Final = 9.2e18
"""A float product at or above this may belong to ints whose product leaves 64 bits; below, it cannot."""

_KERNELS: Final = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_BITS: Final = {"&": pc.bit_wise_and, "|": pc.bit_wise_or, "^": pc.bit_wise_xor}
_LOGIC: Final = {"&": pc.and_, "|": pc.or_, "^": pc.xor}


def bounds(data: Data) -> tuple[int, int]:
    """Return the least and the greatest int; (0, 0) if there is none."""
    if isinstance(data, pa.Scalar):
        value = data.as_py()
        return value, value
    extremes = pc.min_max(data)
    least = extremes["min"].as_py()
    return (0, 0) if least is None else (least, extremes["max"].as_py())


def inexact(data: Data) -> Mask:
    """Return the rows whose int may have no exact float."""
    least, greatest = bounds(data)
    if least >= -EXACT_FLOAT and greatest <= EXACT_FLOAT:
        return None
    return where(pc.or_(pc.less(data, -EXACT_FLOAT), pc.greater(data, EXACT_FLOAT)))


def negate(operand: Vector, type_: pa.DataType) -> Vector:
    data = cast(operand.data, type_)
    overflow = where(pc.equal(data, INT64_MIN)) if type_ == pa.int64() and bounds(data)[0] == INT64_MIN else None
    return Vector(pc.negate(data), either(required(operand), overflow))


def arithmetic(op: str, left: Vector, right: Vector, type_: pa.DataType) -> Vector:
    """`left op right` of numbers, where `type_` is the type of the result."""
    if op in _BITS:
        kernels, wanted = (_LOGIC, pa.bool_()) if type_ == pa.bool_() else (_BITS, type_)
        return Vector(kernels[op](cast(left.data, wanted), cast(right.data, wanted)), required(left, right))
    if op == "/":
        return _divide(left, right)
    if op == "**":
        return _power(left, right)
    a, b = cast(left.data, type_), cast(right.data, type_)
    if op in ("//", "%"):
        return _floor(op, a, b, required(left, right))
    result = _KERNELS[op](a, b)
    overflow = _overflow(op, a, b, result) if type_ == pa.int64() else None
    return Vector(result, either(required(left, right), overflow))


def _overflow(op: str, a: Data, b: Data, result: pa.Array) -> Mask:
    """Return the rows that overflowed 64 bits: by the columns' bounds if these rule it out, else row by row."""
    (a0, a1), (b0, b1) = bounds(a), bounds(b)
    if op == "*":
        corners = [x * y for x in (a0, a1) for y in (b0, b1)]
    else:
        corners = [a0 + b0, a1 + b1] if op == "+" else [a0 - b1, a1 - b0]
    if min(corners) >= INT64_MIN and max(corners) <= INT64_MAX:
        return None
    if op == "*":
        product = pc.multiply(cast(a, pa.float64()), cast(b, pa.float64()))
        return where(pc.greater_equal(pc.abs(product), NEAR_OVERFLOW))
    # A sum that wrapped around has the sign of neither operand; a difference is a sum with the complement.
    other = b if op == "+" else pc.bit_wise_not(b)
    wrapped = pc.bit_wise_and(pc.bit_wise_xor(a, result), pc.bit_wise_xor(other, result))
    return where(pc.less(wrapped, 0))


def _divide(left: Vector, right: Vector) -> Vector:
    suspect = required(left, right)
    if not (pa.types.is_floating(left.data.type) or pa.types.is_floating(right.data.type)):
        # Python rounds the quotient of two ints once; rounding the operands first could round it twice.
        a, b = cast(left.data, pa.int64()), cast(right.data, pa.int64())
        suspect = either(suspect, inexact(a) if isinstance(a, pa.Array) else _beyond(a, right.data))
        suspect = either(suspect, inexact(b) if isinstance(b, pa.Array) else _beyond(b, left.data))
    x, y = cast(left.data, pa.float64()), cast(right.data, pa.float64())
    return Vector(pc.divide(x, y), either(suspect, _zeros(y)))


def _beyond(literal: pa.Scalar, rows_of: Data) -> Mask:
    if abs(literal.as_py()) <= EXACT_FLOAT:
        return None
    return pa.repeat(pa.scalar(True), len(rows_of))


def _zeros(divisor: Data) -> Mask:
    # A literal divisor of zero was refused when the expression was built.
    return None if isinstance(divisor, pa.Scalar) else where(pc.equal(divisor, 0))


def _power(left: Vector, right: Vector) -> Vector:
    base, exponent = cast(left.data, pa.int64()), right.data.as_py()
    result: Data = pc.add(pc.multiply(base, 0), 1)
    for _ in range(exponent):
        result = pc.multiply(result, base)
    least, greatest = bounds(base)
    overflow: Mask = None
    if max(abs(least), abs(greatest)) ** exponent > INT64_MAX:
        estimate = pc.power(pc.abs(cast(base, pa.float64())), float(exponent))
        overflow = where(pc.greater_equal(estimate, NEAR_OVERFLOW))
    return Vector(result, either(required(left), overflow))


def _floor(op: str, a: Data, b: Data, suspect: Mask) -> Vector:
    suspect = either(suspect, _zeros(b))
    if a.type == pa.int64():
        if bounds(a)[0] == INT64_MIN:
            # Divided by -1 it overflows 64 bits.
            suspect = either(suspect, where(pc.equal(a, INT64_MIN) if isinstance(a, pa.Array) else pc.equal(b, -1)))
        kernel = np.floor_divide if op == "//" else np.remainder
        with np.errstate(all="ignore"):
            return Vector(pa.array(kernel(_numpy(a), _divisor(b))), suspect)
    quotient, remainder = _float_divmod(_numpy(a), _divisor(b))
    return Vector(pa.array(quotient if op == "//" else remainder), suspect)


def _float_divmod(a: Any, b: Any) -> tuple[Any, Any]:
    """Follow Python's algorithm: the remainder has the divisor's sign, and the quotient is rounded to the nearest
    integer.
    """
    with np.errstate(all="ignore"):
        remainder = np.fmod(a, b)
        quotient = (a - remainder) / b
        adjust = (remainder != 0) & ((b < 0) != (remainder < 0))
        quotient = np.where(adjust, quotient - 1.0, quotient)
        remainder = np.where(adjust, remainder + b, remainder)
        remainder = np.where(remainder == 0, np.copysign(0.0, b), remainder)
        floored = np.floor(quotient)
        floored = np.where(quotient - floored > 0.5, floored + 1.0, floored)
        return np.where(quotient == 0, np.copysign(0.0, a / b), floored), remainder


def _numpy(data: Data) -> Any:
    if isinstance(data, pa.Scalar):
        return data.as_py()
    return (data.fill_null(1) if data.null_count else data).to_numpy(zero_copy_only=False)


def _divisor(data: Data) -> Any:
    divisor = _numpy(data)
    return divisor if isinstance(data, pa.Scalar) else np.where(divisor == 0, 1, divisor)

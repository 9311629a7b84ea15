"""Comparisons as in Python: exact between ints and floats, and with None equal only to None."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.python_types import INSTANT, LOCAL, NUMBERS, family
from potok.expressions.vectorised.numbers import inexact
from potok.expressions.vectorised.vector import Data, Mask, Vector, cast, either, inherited, nulls, required, where

_KERNELS: Final = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}

_CALENDAR: Final = {
    pa.date32(): (pa.scalar(date.min), pa.scalar(date.max)),
    LOCAL: (pa.scalar(datetime.min, LOCAL), pa.scalar(datetime.max, LOCAL)),
    INSTANT: (
        pa.scalar(datetime.min.replace(tzinfo=UTC), INSTANT),
        pa.scalar(datetime.max.replace(tzinfo=UTC), INSTANT),
    ),
}


def off_calendar(data: Data) -> Mask:
    """Return the rows whose date is outside the range of Python's dates."""
    limits = _CALENDAR.get(data.type)
    if limits is None or isinstance(data, pa.Scalar):
        return None
    extremes = pc.min_max(data)
    if not extremes["min"].is_valid or (
        pc.greater_equal(extremes["min"], limits[0]).as_py() and pc.less_equal(extremes["max"], limits[1]).as_py()
    ):
        return None
    return where(pc.or_(pc.less(data, limits[0]), pc.greater(data, limits[1])))


def compare(op: str, left: Vector, right: Vector) -> Vector:
    kinds = family(left.data.type), family(right.data.type)
    equality = op in ("==", "!=")
    if equality and "null" in kinds:
        other = right if kinds[0] == "null" else left
        return Vector(pc.is_null(other.data) if op == "==" else pc.is_valid(other.data), inherited(left, right))
    numeric = NUMBERS.issuperset(kinds)
    if equality and kinds[0] != kinds[1] and not numeric:
        return _never_equal(op, left, right)
    suspect = either(off_calendar(left.data), off_calendar(right.data))
    a, b = left.data, right.data
    if numeric:
        a, b, suspect = _numbers(left.data, right.data)
    result = _KERNELS[op](a, b)
    if not equality:
        return Vector(result, either(required(left, right), suspect))
    return Vector(_with_nulls(op, result, a, b), either(inherited(left, right), suspect))


def _numbers(left: Data, right: Data) -> tuple[Data, Data, Mask]:
    """Return both sides in one type, and the rows where an int was too large to be compared as a float."""
    floats = pa.types.is_floating(left.type), pa.types.is_floating(right.type)
    if left.type == right.type and left.type != pa.bool_():
        return left, right, None
    if not any(floats):
        return cast(left, pa.int64()), cast(right, pa.int64()), None
    suspect: Mask = None
    for data, other, is_float in ((left, right, floats[0]), (right, left, floats[1])):
        if is_float:
            continue
        whole = cast(data, pa.int64())
        if isinstance(whole, pa.Array):
            suspect = either(suspect, inexact(whole))
        elif int(float(whole.as_py())) != whole.as_py():
            suspect = pa.repeat(pa.scalar(True), len(other))
    return cast(left, pa.float64()), cast(right, pa.float64()), suspect


def _with_nulls(op: str, result: pa.Array, a: Data, b: Data) -> pa.Array:
    """None == None, and None != anything else."""
    if result.null_count == 0:
        return result
    left, right = nulls(a), nulls(b)
    if left is None or right is None:
        return pc.fill_null(result, op == "!=")
    both = pc.and_(left, right)
    return pc.coalesce(result, both if op == "==" else pc.invert(both))


def _never_equal(op: str, left: Vector, right: Vector) -> Vector:
    """`==` between values of families that are never equal, except for None and None."""
    column = left.data if isinstance(left.data, pa.Array) else right.data
    unequal = pa.repeat(pa.scalar(op == "!="), len(column))
    left_nulls, right_nulls = nulls(left.data), nulls(right.data)
    if left_nulls is not None and right_nulls is not None:
        both = pc.and_(left_nulls, right_nulls)
        unequal = both if op == "==" else pc.invert(both)
    return Vector(unequal, inherited(left, right))

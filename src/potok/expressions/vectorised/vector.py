"""A column under computation, with the rows whose result cannot be vouched for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Data: TypeAlias = "pa.Array | pa.Scalar"
"""A literal stays a scalar: Arrow's kernels take both."""

Mask: TypeAlias = "pa.BooleanArray | None"
"""Rows, without nulls among them. None is no row, so that clean columns pay nothing."""


@dataclass(frozen=True, slots=True)
class Vector:
    """Data and its suspects. In a row that is not suspect, the data is what Python gives, and null is Python's None."""

    data: Data
    suspect: Mask = None


def either(*masks: Mask) -> Mask:
    """The rows in any of the masks."""
    union: Mask = None
    for mask in masks:
        if mask is not None:
            union = mask if union is None else pc.or_(union, mask)
    return union


def nulls(data: Data) -> Mask:
    """The rows that hold None; costs nothing where the column has none. Literals are never None here."""
    if isinstance(data, pa.Scalar) or data.null_count == 0:
        return None
    return pc.is_null(data)


def where(condition: Data) -> Mask:
    """A mask of the rows where a computed condition is true; a null condition is not."""
    if isinstance(condition, pa.Scalar):
        raise TypeError("a condition on literals alone has no rows")
    if condition.null_count:
        condition = pc.fill_null(condition, False)
    return condition if pc.any(condition).as_py() else None


def required(*operands: Vector) -> Mask:
    """Suspects of an operation that raises, or means something else, when an operand is None."""
    return either(*(operand.suspect for operand in operands), *(nulls(operand.data) for operand in operands))


def inherited(*operands: Vector) -> Mask:
    """Suspects of an operation that takes None as it comes."""
    return either(*(operand.suspect for operand in operands))


def cast(data: Data, type_: pa.DataType) -> Data:
    """The data in another type of the same family or a wider one. int to float rounds to even, as Python's does."""
    if data.type == type_:
        return data
    if isinstance(data, pa.Scalar) and not data.is_valid:
        return pa.scalar(None, type_)
    return data.cast(type_, safe=False)


def as_array(data: Data, rows: int) -> pa.Array:
    return pa.repeat(data, rows) if isinstance(data, pa.Scalar) else data

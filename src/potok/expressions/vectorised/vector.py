"""A column being computed, with the rows whose result may differ from Python's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Data: TypeAlias = "pa.Array | pa.Scalar"
"""A literal stays a scalar: Arrow's kernels accept both."""

Mask: TypeAlias = "pa.BooleanArray | None"
"""A mask of rows, without nulls. None means no row, so that clean columns cost nothing."""


@dataclass(frozen=True, slots=True)
class Vector:
    """Data and its suspects. In a row that is not suspect, the data equals Python's result, and null is Python's
    None.
    """

    data: Data
    suspect: Mask = None


def either(*masks: Mask) -> Mask:
    """Return the rows in any of the masks."""
    union: Mask = None
    for mask in masks:
        if mask is not None:
            union = mask if union is None else pc.or_(union, mask)
    return union


def nulls(data: Data) -> Mask:
    """Return the rows that are None; costs nothing if the column has no nulls. Literals are never None here."""
    if isinstance(data, pa.Scalar) or data.null_count == 0:
        return None
    return pc.is_null(data)


def where(condition: Data) -> Mask:
    """Return a mask of the rows where a computed condition is true; a null condition is not."""
    if isinstance(condition, pa.Scalar):
        raise TypeError("a condition on literals alone has no rows")
    if condition.null_count:
        condition = pc.fill_null(condition, False)
    return condition if pc.any(condition).as_py() else None


def required(*operands: Vector) -> Mask:
    """Return the suspects of an operation that raises, or has another meaning, when an operand is None."""
    return either(*(operand.suspect for operand in operands), *(nulls(operand.data) for operand in operands))


def inherited(*operands: Vector) -> Mask:
    """Return the suspects of an operation that accepts None."""
    return either(*(operand.suspect for operand in operands))


def cast(data: Data, type_: pa.DataType) -> Data:
    """Return the data in another type of the same family or a wider one. int to float rounds to even, as in
    Python.
    """
    if data.type == type_:
        return data
    if isinstance(data, pa.Scalar) and not data.is_valid:
        return pa.scalar(None, type_)
    return data.cast(type_, safe=False)


def as_array(data: Data, rows: int) -> pa.Array:
    return pa.repeat(data, rows) if isinstance(data, pa.Scalar) else data

"""Find the rows that are true in Python."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.python_types import family


def truthy(column: pa.Array | list[object]) -> pa.BooleanArray:
    """Return the mask of `bool(value)`, without nulls: None, False, 0 and empty values are false; NaN is true."""
    if isinstance(column, list):
        return pa.array([bool(value) for value in column], pa.bool_())
    mask = _mask(column)
    return pc.fill_null(mask, False) if mask.null_count else mask


def _mask(column: pa.Array) -> pa.Array:
    match family(column.type):
        case "bool":
            return column
        case "int" | "float":
            return pc.not_equal(column, 0)
        case "string" | "binary":
            return pc.not_equal(pc.binary_length(column), 0)
        case "decimal":
            return pc.not_equal(column, pa.scalar(Decimal(0), column.type))
        case "duration":
            return pc.not_equal(column, pa.scalar(timedelta(0), column.type))
        case "list" | "map":
            filled = pa.array(np.diff(column.offsets.to_numpy()) > 0)
            return pc.and_(filled, pc.is_valid(column))
        case "struct" if column.type.num_fields == 0:
            return pa.repeat(pa.scalar(False), len(column))
        case "null" | "struct" | "date" | "time" | "timestamp":
            return pc.is_valid(column)
        case _:
            return pa.array([bool(value) for value in column.to_pylist()], pa.bool_())

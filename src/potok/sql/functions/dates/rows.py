"""Row-by-row computation for date and time functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.function import Context

Numbers = np.ndarray[Any, Any]


def valid_rows(columns: Sequence[pa.Array], rows: int) -> Numbers:
    """Return the rows without NULL."""
    valid = np.ones(rows, bool)
    for column in columns:
        if column.null_count:
            valid &= column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def numbers_of(column: pa.Array) -> Numbers:
    """Return a column of integers, dates or times as numbers, 0 for NULL."""
    whole = column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32())
    return np.asarray(whole.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def fill(
    values: list[Any], rows: Iterable[Any], columns: Sequence[list[Any]], function: Callable[..., Any], context: Context
) -> None:
    """Compute some rows; a row for which the function raises ValueError is unchanged and reported."""
    for row in rows:
        try:
            values[row] = function(*(column[row] for column in columns))
        except ValueError as error:
            context.failures[int(row)] = str(error)


def masked(column: pa.Array, valid: Numbers) -> pa.Array:
    """Return the column, NULL where a row is not valid."""
    return column if valid.all() else pc.if_else(pa.array(valid), column, pa.scalar(None, column.type))


def numbers_to(numbers: Numbers, type_: pa.DataType, valid: Numbers) -> pa.Array:
    """Convert numbers to a column of integers, dates, times or timestamps."""
    storage = np.int64 if type_.bit_width == 64 else np.int32
    return pa.array(numbers.astype(storage), mask=None if valid.all() else ~valid).cast(type_)

"""Work row by row where a column cannot be computed as a whole, for functions of dates and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.function import Context

Numbers = np.ndarray[Any, Any]


def valid_rows(columns: Sequence[pa.Array], rows: int) -> Numbers:
    """Which rows have no NULL."""
    valid = np.ones(rows, bool)
    for column in columns:
        if column.null_count:
            valid &= column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def numbers_of(column: pa.Array) -> Numbers:
    """The values of a column of whole numbers, dates or times as numbers, 0 where it is NULL."""
    whole = column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32())
    return np.asarray(whole.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def fill(
    values: list[Any], rows: Iterable[Any], columns: Sequence[list[Any]], function: Callable[..., Any], context: Context
) -> None:
    """Compute some rows; one for which the function raises ValueError stays as it is, and is noted."""
    for row in rows:
        try:
            values[row] = function(*(column[row] for column in columns))
        except ValueError as error:
            context.failures[int(row)] = str(error)


def masked(column: pa.Array, valid: Numbers) -> pa.Array:
    """The column, NULL where a row is not valid."""
    return column if valid.all() else pc.if_else(pa.array(valid), column, pa.scalar(None, column.type))


def numbers_to(numbers: Numbers, type_: pa.DataType, valid: Numbers) -> pa.Array:
    """Numbers as a column of whole numbers, dates, times or timestamps."""
    storage = np.int64 if type_.bit_width == 64 else np.int32
    return pa.array(numbers.astype(storage), mask=None if valid.all() else ~valid).cast(type_)

"""GENERATE_SERIES."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from potok.sql.budget import reserve
from potok.sql.functions.collections.lists import Mask, is_valid, list_column, numbers
from potok.sql.functions.function import Context, Overload, ScalarFunction, takes
from potok.sql.types import BIGINT, INT

LONGEST_SERIES: Final = 100_000
"""A longer series is NULL, so that one record cannot exhaust the memory."""


def _series(arguments: Sequence[Any], _: int, result: pa.DataType, context: Context) -> pa.Array:
    valid = np.logical_and.reduce([is_valid(argument) for argument in arguments])
    start, end = numbers(arguments[0]), numbers(arguments[1])
    step = numbers(arguments[2]) if len(arguments) > 2 else np.where(end > start, 1, -1)
    # A distance beyond 2^63 is longer than any series.
    far = np.where(end > start, end - start, start - end)
    lengths = np.where(step == 0, 0, 1 + far // np.where(step == 0, 1, np.abs(step)))
    for bad, reason in (
        (step == 0, "the step of GENERATE_SERIES is 0"),
        (((end > start) & (step < 0)) | ((end < start) & (step > 0)), "the step of GENERATE_SERIES has the wrong sign"),
        ((far < 0) | (lengths > LONGEST_SERIES), f"GENERATE_SERIES would give more than {LONGEST_SERIES} items"),
    ):
        valid = _without(valid, bad, reason, context)
    lengths = np.where(valid, lengths, 0)
    reserve(5 * 8 * int(lengths.sum()))
    at = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    items = np.repeat(start, lengths) + at * np.repeat(step, lengths)
    return list_column(pa.array(items, BIGINT).cast(result.value_type), lengths, valid)


def _without(valid: Mask, bad: Mask, reason: str, context: Context) -> Mask:
    for row in np.flatnonzero(valid & bad):
        context.failures[int(row)] = reason
    return valid & ~bad


GENERATE_SERIES: Final = ScalarFunction(
    "GENERATE_SERIES",
    "array",
    "The numbers from a start to an end, both included, by a step, which is 1 or -1 unless given. NULL if the step is 0"
    f" or leads away from the end, or if there would be more than {LONGEST_SERIES} numbers.",
    (
        Overload(
            "GENERATE_SERIES(start INT, end INT[, step INT])",
            takes(INT, INT, INT, result=pa.list_(INT), optional=1),
            _series,
        ),
        Overload(
            "GENERATE_SERIES(start BIGINT, end BIGINT[, step INT])",
            takes(BIGINT, BIGINT, INT, result=pa.list_(BIGINT), optional=1),
            _series,
        ),
    ),
    example="GENERATE_SERIES(1, 7, 3)  -- [1, 4, 7]",
)

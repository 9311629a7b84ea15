"""Limit the time of the regular expressions of a column: one record must not stop a query."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from potok.compat.java.time_limit import set_deadline
from potok.sql.budget import check_time, end_of_work
from potok.sql.functions.function import Compute, Context, each_row

ROW_S = 1.0
"""A record may take so long."""
COLUMN_S = 5.0
"""All slow records of a column together; once that is used up, each gets no more than `LEAST_S`."""
LEAST_S = 0.01


def each_text(function: Callable[..., Any]) -> Compute:
    """A computation by a function that applies regular expressions, row by row."""

    def compute(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        left, over = COLUMN_S, end_of_work() or math.inf

        def timed(*given: Any) -> Any:
            nonlocal left
            began = time.monotonic()
            set_deadline(min(began + min(ROW_S, max(left, LEAST_S)), over))
            check_time()
            try:
                return function(*given)
            finally:
                set_deadline(None)
                took = time.monotonic() - began
                left -= took if took > LEAST_S / 2 else 0.0

        return each_row(timed)(arguments, rows, result, context)

    return compute

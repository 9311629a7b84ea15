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
"""The time limit per record."""
COLUMN_S = 5.0
"""The time limit for all slow records of a column together; after that, each gets at most `LEAST_S`."""
LEAST_S = 0.01


def each_text(function: Callable[..., Any]) -> Compute:
    """Return a row-by-row computation by a function that applies regular expressions."""

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

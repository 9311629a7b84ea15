"""The event time of records, from a field or by a function of key and value."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.clock import epoch_ms
from potok.expressions.computed import Computed
from potok.expressions.expr import Expr
from potok.expressions.function import Function
from potok.operators.core.call import Errors, call_python, call_traced, evaluated
from potok.operators.core.chunk import Chunk, Column, Ints


def event_times(chunk: Chunk, function: Function, expr: Expr | None, format_: str = "") -> tuple[Ints, Errors]:
    """Return the times of the records of a chunk, and the errors of records whose time cannot be read."""
    if expr is None:
        results, errors = call_python(function, chunk)
        times, misfits = instants(results, format_)
        return times, {**misfits, **errors}
    called = call_traced(expr, function, chunk, None)
    times, misfits = instants(called.column, format_)
    if misfits and isinstance(expr, Computed):
        misfits = _input_errors(expr, chunk, sorted(misfits))
    return times, {**misfits, **called.errors}


def _input_errors(expr: Computed, chunk: Chunk, rows: list[int]) -> Errors:
    """Explain a computation that failed with null by its input."""
    part = chunk.take(np.array(rows))
    given = [evaluated(arg, part, None).column.to_pylist() for arg in expr.args]
    rendered = (", ".join("nothing" if v is None else repr(v) for v in values) for values in zip(*given, strict=True))
    return {row: f"cannot read a time from {text} for {expr}" for row, text in zip(rows, rendered, strict=True)}


def instants(column: Column, format_: str = "") -> tuple[Ints, Errors]:
    """Convert numbers (milliseconds), text, dates and datetimes to milliseconds since 1970."""
    if not isinstance(column, list) and not format_:
        if pa.types.is_integer(column.type) and not column.null_count:
            return np.asarray(column.to_numpy(), np.int64), {}
        if pa.types.is_timestamp(column.type) and not column.null_count:
            return _floored(column), {}
    if not isinstance(column, list):
        column = column.to_pylist()
    errors: Errors = {}
    times: npt.NDArray[np.int64] = np.zeros(len(column), np.int64)
    for row, value in enumerate(column):
        try:
            times[row] = instant(value, format_)
        except (TypeError, ValueError, OverflowError) as error:
            errors[row] = f"cannot read a time from {value!r}: {error}"
    return times, errors


def _floored(column: pa.Array) -> Ints:
    """Return whole milliseconds at or before each instant, also before 1970."""
    per_ms = {"s": 1_000, "ms": 1, "us": 1_000, "ns": 1_000_000}[column.type.unit]
    counts = np.asarray(column.cast(pa.int64()).to_numpy(), np.int64)
    return counts * per_ms if column.type.unit == "s" else counts // per_ms


def instant(value: Any, format_: str = "") -> int:
    if isinstance(value, bool) or value is None:
        raise TypeError("expected milliseconds, ISO text or a datetime")
    if isinstance(value, int | float):
        return int(value * 1000) if format_ == "seconds" else int(value // (1000 if format_ == "microseconds" else 1))
    if isinstance(value, str):
        value = datetime.strptime(value, format_) if format_ else datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return epoch_ms(value)
    if isinstance(value, date):
        return epoch_ms(datetime(value.year, value.month, value.day))
    raise TypeError("expected milliseconds, ISO text or a datetime")

"""Parts of dates and times, and the length of a duration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.expr import Call
from potok.expressions.operations.operation import Operation, Vectorised, always
from potok.expressions.python_types import Family
from potok.expressions.vectorised.comparisons import off_calendar
from potok.expressions.vectorised.numbers import inexact
from potok.expressions.vectorised.vector import Data, Vector, cast, either, required

_DATES: Final[frozenset[Family]] = frozenset({"date", "timestamp"})
_TIMES: Final[frozenset[Family]] = frozenset({"timestamp"})


def _microsecond(data: Data) -> Data:
    # Arrow counts microseconds from the millisecond, Python from the second.
    return pc.add(pc.multiply(pc.millisecond(data), 1000), pc.microsecond(data))


def _weekday(data: Data) -> Data:
    return pc.day_of_week(data, count_from_zero=True, week_start=1)


def _isoweekday(data: Data) -> Data:
    return pc.day_of_week(data, count_from_zero=False, week_start=1)


def _part(kernel: Callable[[Data], Data]) -> Vectorised:
    def vector(vectors: Sequence[Vector], _: Call) -> Vector:
        (operand,) = vectors
        return Vector(cast(kernel(operand.data), pa.int64()), either(required(operand), off_calendar(operand.data)))

    return vector


def _total_seconds(vectors: Sequence[Vector], _: Call) -> Vector:
    (operand,) = vectors
    microseconds = cast(operand.data, pa.int64())
    seconds = pc.divide(cast(microseconds, pa.float64()), 1e6)
    return Vector(seconds, either(required(operand), inexact(microseconds)))


INSTANT_OPERATIONS: Final = (
    *(
        Operation(name, "attribute", _DATES, always(pa.int64()), _part(kernel))
        for name, kernel in {"year": pc.year, "month": pc.month, "day": pc.day}.items()
    ),
    *(
        Operation(name, "attribute", _TIMES, always(pa.int64()), _part(kernel))
        for name, kernel in {
            "hour": pc.hour,
            "minute": pc.minute,
            "second": pc.second,
            "microsecond": _microsecond,
        }.items()
    ),
    Operation("weekday", "method", _DATES, always(pa.int64()), _part(_weekday)),
    Operation("isoweekday", "method", _DATES, always(pa.int64()), _part(_isoweekday)),
    Operation("total_seconds", "method", frozenset({"duration"}), always(pa.float64()), _total_seconds),
)

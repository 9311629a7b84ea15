"""STDDEV_SAMP, STDDEV_SAMPLE and CORRELATION."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.function import AggregateCall, AggregateFunction, AggregateOverload, Fold, Part
from potok.sql.types import BIGINT, DOUBLE, INT, is_number

State = list[Any]
"""The count, the sum, and the sum of squared deviations from the mean, which keeps the squared numbers small. For
integers also the sum of squares, which is exact: removed rows leave no error."""


def _add_integer(state: State, value: Any) -> State:
    if value is None:
        return state
    apart = None if state[2] is None else _add(state[:3], value)[2]
    return [state[0] + 1, state[1] + value, apart, state[3] + value * value]


def _undo_integer(state: State, value: Any) -> State:
    return state if value is None else [state[0] - 1, state[1] - value, None, state[3] - value * value]


def _merge_integers(left: State, right: State) -> State:
    if not left[0] or not right[0]:
        return left if left[0] else right
    return [left[0] + right[0], left[1] + right[1], None, left[3] + right[3]]


def _integer_variance(state: State) -> float:
    """Rounded as by ksqlDB while rows are only added, and computed from the exact sums after that."""
    count, total, apart, squares = state
    if apart is not None:
        return _variance(state)
    return float((count * squares - total * total) / (count * (count - 1))) if count > 1 else 0.0


def _sums(left: State, right: State) -> State:
    return [one + other for one, other in zip(left, right, strict=True)]


def _add(state: State, value: Any) -> State:
    """The method of Youngs and Cramer, as in ksqlDB."""
    if value is None:
        return state
    count, total, squares = state[0] + 1, state[1] + value, state[2]
    if count > 1:
        delta = float(value * count - total)
        squares += delta * delta / (count * (count - 1))
    return [count, total, squares]


def _undo(state: State, value: Any) -> State:
    if value is None:
        return state
    count, total, squares = state[0] - 1, state[1] - value, 0.0
    if count > 0:
        delta = float(value * state[0] - state[1])
        squares = max(0.0, state[2] - delta * delta / (count * state[0]))
    return [count, total, squares]


def _merge(left: State, right: State) -> State:
    if not left[0] or not right[0]:
        return left if left[0] else right
    count = left[0] + right[0]
    apart = left[1] / left[0] - right[1] / right[0]
    return [count, left[1] + right[1], left[2] + right[2] + left[0] * right[0] * apart * apart / count]


def _variance(state: State) -> float:
    return float(state[2] / (state[0] - 1)) if state[0] > 1 else 0.0


def _deviation(of: Callable[[float], float]) -> Callable[..., AggregateCall | None]:
    """An aggregate of the variance."""
    integers = Fold(
        start=lambda: [0, 0, 0.0, 0],
        add=_add_integer,
        result=lambda state: of(_integer_variance(state)),
        undo=_undo_integer,
        merge=_merge_integers,
    )
    doubles = Fold(
        start=lambda: [0, 0.0, 0.0], add=_add, result=lambda state: of(_variance(state)), undo=_undo, merge=_merge
    )

    def accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
        if len(types) != 1 or not is_number(types[0]):
            return None
        exact = types[0] in (INT, BIGINT)
        return AggregateCall([BIGINT if exact else DOUBLE], DOUBLE, integers if exact else doubles)

    return accept


def _terms(x: Any, y: Any) -> State:
    return [1, x, y, x * x, y * y, x * y]


def _correlate(state: State, x: Any, y: Any) -> State:
    if x is None or y is None:
        return state
    return [kept + term for kept, term in zip(state, _terms(x, y), strict=True)]


def _uncorrelate(state: State, x: Any, y: Any) -> State:
    if x is None or y is None:
        return state
    return [kept - term for kept, term in zip(state, _terms(x, y), strict=True)]


def _correlation(state: State) -> float:
    return float(_correlations([np.array([term], np.float64) for term in state])[0])


def _correlations(terms: Sequence[Any]) -> Any:
    """Return Pearson's coefficient from the sums; NaN if it is undefined, as for a single record."""
    count, x, y, xx, yy, xy = terms
    with np.errstate(all="ignore"):
        return (count * xy - x * y) / np.sqrt((count * xx - x * x) * (count * yy - y * y))


@cache
def _correlation_parts() -> tuple[Part, ...]:
    def part(index: int) -> Callable[[Sequence[pa.Array], int], pa.Array]:
        def compute(columns: Sequence[pa.Array], _: int) -> pa.Array:
            x, y = columns
            # A product with NULL is NULL: a record with NULL in one column counts for neither.
            both = pc.multiply(x, y).is_valid()
            chosen = (x, x, y, pc.multiply(x, x), pc.multiply(y, y), pc.multiply(x, y))[index]
            return pc.if_else(both, pa.scalar(1.0) if index == 0 else chosen, pa.scalar(None, DOUBLE))

        return compute

    return tuple(Part("sum", DOUBLE, part(index)) for index in range(6))


def _finish_correlation(parts: Sequence[pa.Array], _: int, __: pa.DataType) -> pa.Array:
    sums = [pc.fill_null(part, 0.0).to_numpy(zero_copy_only=False) for part in parts]
    return pa.array(_correlations(sums), DOUBLE)


def _correlation_accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
    if len(types) != 2 or not all(is_number(type_) for type_ in types):
        return None
    fold = Fold(
        start=lambda: [0, 0.0, 0.0, 0.0, 0.0, 0.0],
        add=_correlate,
        result=_correlation,
        undo=_uncorrelate,
        merge=_sums,
    )
    return AggregateCall([DOUBLE, DOUBLE], DOUBLE, fold, _correlation_parts(), _finish_correlation)


STDDEV_SAMP: Final = AggregateFunction(
    "STDDEV_SAMP",
    "The variance of the values as a sample, which is the square of their standard deviation (ksqlDB computes it under"
    " this name). 0.0 for less than two values. See STDDEV_SAMPLE.",
    (AggregateOverload("STDDEV_SAMP(value INT|BIGINT|DECIMAL|DOUBLE)", _deviation(float)),),
    example="SELECT sensor, STDDEV_SAMP(reading) FROM readings GROUP BY sensor",
)
STDDEV_SAMPLE: Final = AggregateFunction(
    "STDDEV_SAMPLE",
    "The standard deviation of the values as a sample. 0.0 for less than two values.",
    (AggregateOverload("STDDEV_SAMPLE(value INT|BIGINT|DECIMAL|DOUBLE)", _deviation(math.sqrt)),),
    example="SELECT sensor, STDDEV_SAMPLE(reading) FROM readings GROUP BY sensor",
)
CORRELATION: Final = AggregateFunction(
    "CORRELATION",
    "Pearson's correlation of two columns, from -1 to 1. Records in which one of them is NULL are left out. NaN if one"
    " of them is always the same.",
    (AggregateOverload("CORRELATION(x DOUBLE, y DOUBLE)", _correlation_accept, columns=2),),
    example="SELECT city, CORRELATION(rain, sales) FROM days GROUP BY city",
)

"""COUNT, SUM, AVG and SUM_LIST."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context as Precision
from decimal import Decimal
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.function import AggregateCall, AggregateFunction, AggregateOverload, Fold, Part
from potok.sql.types import BIGINT, DOUBLE, INT, is_number, type_name

_EXACT: Final = Precision(prec=80)
_OUTGROWN: Final = 2**63


def checked(total: Any) -> Any:
    """Sum integers within 64 bits. A record that makes the sum overflow becomes a dead letter, as in every sum."""
    if isinstance(total, int) and not -_OUTGROWN <= total < _OUTGROWN:
        raise OverflowError("the sum exceeds 64 bits")
    return total


def wrapped(total: int) -> int:
    """Wrap an integer to 32 bits, as in Java."""
    return (total + 2**31) % 2**32 - 2**31


@cache
def as_type(type_: pa.DataType) -> Callable[[Sequence[pa.Array], int], pa.Array]:
    return lambda columns, _: columns[0].cast(type_)


def _count_accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
    if len(types) > 1:
        return None
    fold = Fold(
        start=lambda: 0,
        add=lambda count, *value: count if None in value else count + 1,
        result=lambda count: count,
        undo=lambda count, *value: count if None in value else count - 1,
        merge=lambda left, right: left + right,
    )
    return AggregateCall(types, BIGINT, fold, (Part("count", BIGINT, _ones if types else None),))


def _ones(columns: Sequence[pa.Array], _: int) -> pa.Array:
    return pc.if_else(columns[0].is_valid(), pa.scalar(1, BIGINT), pa.scalar(None, BIGINT))


def _wrapped_column(parts: Sequence[pa.Array], _: int, __: pa.DataType) -> pa.Array:
    return pa.array(pc.fill_null(parts[0], 0).to_numpy(zero_copy_only=False).astype(np.int32), INT)


def _sum_accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
    if len(types) != 1 or not is_number(types[0]):
        return None
    type_ = types[0]
    if pa.types.is_decimal(type_):
        return AggregateCall(types, type_, _decimal_sum(type_))
    part = DOUBLE if type_ == DOUBLE else BIGINT
    parts = (Part("sum", part, as_type(part), 0.0 if type_ == DOUBLE else 0),)
    return AggregateCall(types, type_, _number_sum(type_), parts, _wrapped_column if type_ == INT else None)


def _number_sum(type_: pa.DataType) -> Fold:
    zero: int | float = 0.0 if type_ == DOUBLE else 0
    return Fold(
        start=lambda: zero,
        add=lambda total, value: total if value is None else checked(total + value),
        result=wrapped if type_ == INT else lambda total: total,
        undo=lambda total, value: total if value is None else checked(total - value),
        merge=lambda left, right: checked(left + right),
    )


def _decimal_sum(type_: pa.DataType) -> Fold:
    """Sum decimals as integers of the smallest unit, which are exact and cheap to store."""
    most, scale = 10**type_.precision, type_.scale

    def units(value: Decimal) -> int:
        return int(value.scaleb(scale, _EXACT))

    def fitting(total: int) -> int:
        if abs(total) >= most:
            raise OverflowError(f"the sum does not fit in {type_name(type_)}")
        return total

    return Fold(
        start=lambda: 0,
        add=lambda total, value: total if value is None else fitting(total + units(value)),
        result=lambda total: Decimal(total).scaleb(-scale, _EXACT),
        undo=lambda total, value: total if value is None else fitting(total - units(value)),
        merge=lambda left, right: fitting(left + right),
    )


def _avg_accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
    if len(types) != 1 or not is_number(types[0]):
        return None
    summed = BIGINT if types[0] in (INT, BIGINT) else DOUBLE
    zero: int | float = 0 if summed == BIGINT else 0.0
    fold = Fold(
        start=lambda: [zero, 0],
        add=lambda state, value: state if value is None else [checked(state[0] + value), state[1] + 1],
        result=lambda state: float(state[0]) / state[1] if state[1] else 0.0,
        undo=lambda state, value: state if value is None else [checked(state[0] - value), state[1] - 1],
        merge=lambda left, right: [checked(left[0] + right[0]), left[1] + right[1]],
    )
    parts = (Part("sum", summed, as_type(summed)), Part("count", BIGINT, _ones))
    return AggregateCall([summed], DOUBLE, fold, parts, _mean)


def _mean(parts: Sequence[pa.Array], _: int, __: pa.DataType) -> pa.Array:
    totals, counts = (pc.fill_null(part, 0).to_numpy(zero_copy_only=False) for part in parts)
    return pa.array(np.where(counts == 0, 0.0, totals.astype(np.float64) / np.maximum(counts, 1)), DOUBLE)


def _sum_list_accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
    if len(types) != 1 or not pa.types.is_list(types[0]) or types[0].value_type not in (INT, BIGINT, DOUBLE):
        return None
    item = types[0].value_type
    total = _number_sum(item)

    def sum_of(values: list[Any] | None) -> Any:
        return None if values is None else sum((value for value in values if value is not None), start=total.start())

    undo = total.undo
    assert undo is not None
    fold = Fold(
        start=total.start,
        add=lambda state, values: total.add(state, sum_of(values)),
        result=total.result,
        undo=lambda state, values: undo(state, sum_of(values)),
        merge=total.merge,
    )
    return AggregateCall(types, item, fold)


COUNT: Final = AggregateFunction(
    "COUNT",
    "The number of records; with a value, of those in which it is not NULL.",
    (
        AggregateOverload("COUNT(*)", lambda types, rest: None if types else _count_accept(types, rest), columns=0),
        AggregateOverload("COUNT(value ANY)", lambda types, rest: _count_accept(types, rest) if types else None),
    ),
    example="SELECT page, COUNT(*) FROM clicks GROUP BY page",
)
SUM: Final = AggregateFunction(
    "SUM",
    "The sum of the values, of their own type; 0 if all are NULL. A sum of INT goes round beyond 32 bits, as in ksqlDB:"
    " CAST the values to BIGINT where that may happen. A record that makes another sum outgrow its type is a dead"
    " letter.",
    (AggregateOverload("SUM(value INT|BIGINT|DECIMAL|DOUBLE)", _sum_accept),),
    example="SELECT region, SUM(amount) FROM orders GROUP BY region",
)
AVG: Final = AggregateFunction(
    "AVG",
    "The mean of the values that are not NULL, as a DOUBLE; 0.0 if there are none.",
    (AggregateOverload("AVG(value INT|BIGINT|DECIMAL|DOUBLE)", _avg_accept),),
    example="SELECT sensor, AVG(reading) FROM readings GROUP BY sensor",
)
SUM_LIST: Final = AggregateFunction(
    "SUM_LIST",
    "The sum of the items of all arrays. NULLs, among the items too, count for nothing.",
    (AggregateOverload("SUM_LIST(values ARRAY<INT>|ARRAY<BIGINT>|ARRAY<DOUBLE>)", _sum_list_accept),),
    example="SELECT id, SUM_LIST(scores) FROM games GROUP BY id",
)

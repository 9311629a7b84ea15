"""EARLIEST_BY_OFFSET and LATEST_BY_OFFSET."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from potok.sql.errors import Refused
from potok.sql.functions.function import AggregateCall, AggregateFunction, AggregateOverload, Fold
from potok.sql.types import NULL


def _fold(latest: bool, size: int, ignore_nulls: bool, single: bool) -> Fold:
    """States are the relevant values, in order of arrival."""

    def add(state: list[Any], value: Any) -> list[Any]:
        if (value is None and ignore_nulls) or (len(state) >= size and not latest):
            return state
        state.append(value)
        return state[-size:]

    def result(state: list[Any]) -> Any:
        return list(state) if not single else state[0] if state else None

    # Two sessions cannot be merged by their values, which do not show which has the earlier record. Their records are
    # aggregated again, in offset order.
    return Fold(start=list, add=add, result=result, order_dependent=True)


def _accept(function: str, latest: bool, types: Sequence[pa.DataType], literals: Sequence[Any]) -> AggregateCall | None:
    single = not literals or isinstance(literals[0], bool)
    ignores = list(literals if single else literals[1:])
    if not types or types[0] == NULL or len(ignores) > 1 or any(not isinstance(given, bool) for given in ignores):
        return None
    size = 1 if single else literals[0]
    if not isinstance(size, int):
        return None
    if size < 1:
        raise Refused(f"{function} of {size} values", hint="write a number from 1 on")
    fold = _fold(latest, size, ignores[0] if ignores else True, single)
    return AggregateCall(types[:1], types[0] if single else pa.list_(types[0]), fold)


def _overloads(function: str, latest: bool) -> tuple[AggregateOverload, ...]:
    def one(types: Sequence[pa.DataType], literals: Sequence[Any]) -> AggregateCall | None:
        return None if literals and not isinstance(literals[0], bool) else _accept(function, latest, types, literals)

    def several(types: Sequence[pa.DataType], literals: Sequence[Any]) -> AggregateCall | None:
        return _accept(function, latest, types, literals) if literals and not isinstance(literals[0], bool) else None

    return (
        AggregateOverload(f"{function}(value ANY[, ignore_nulls BOOLEAN])", one),
        AggregateOverload(f"{function}(value ANY, n INT[, ignore_nulls BOOLEAN])", several),
    )


EARLIEST_BY_OFFSET: Final = AggregateFunction(
    "EARLIEST_BY_OFFSET",
    "The first value, or the n first ones as an array. NULLs are passed over unless ignore_nulls is FALSE. For streams"
    " alone.",
    _overloads("EARLIEST_BY_OFFSET", latest=False),
    example="SELECT id, EARLIEST_BY_OFFSET(city) FROM moves GROUP BY id",
)
LATEST_BY_OFFSET: Final = AggregateFunction(
    "LATEST_BY_OFFSET",
    "The last value, or the n last ones as an array, the oldest first. NULLs are passed over unless ignore_nulls is"
    " FALSE. For streams alone.",
    _overloads("LATEST_BY_OFFSET", latest=True),
    example="SELECT id, LATEST_BY_OFFSET(city, 3) FROM moves GROUP BY id",
)

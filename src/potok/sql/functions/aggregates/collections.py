"""COLLECT_LIST, COLLECT_SET, HISTOGRAM, ATTR and COUNT_DISTINCT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from potok.sql.functions.comparing import identity
from potok.sql.functions.function import AggregateCall, AggregateFunction, AggregateOverload, Fold
from potok.sql.types import BIGINT, NULL, VARCHAR

MOST_COLLECTED: Final = 2**31 - 1
"""How many values COLLECT_LIST and COLLECT_SET collect; further ones are ignored. ksqlDB has no limit either unless
`ksql.functions.collect_list.limit` sets one (1000 in its cloud)."""

MOST_COUNTED: Final = 1000
"""How many distinct values HISTOGRAM counts; further ones are ignored, as in ksqlDB."""


def _one(types: Sequence[pa.DataType]) -> pa.DataType | None:
    return types[0] if len(types) == 1 and types[0] != NULL else None


def collect_list(limit: int) -> Fold:
    def add(state: list[Any], value: Any) -> list[Any]:
        if len(state) < limit:
            state.append(value)
        return state

    def undo(state: list[Any], value: Any) -> list[Any]:
        wanted = identity(value)
        for index in range(len(state) - 1, -1, -1):
            if identity(state[index]) == wanted:
                del state[index]
                break
        return state

    return Fold(
        start=list,
        add=add,
        result=list,
        undo=undo,
        merge=lambda left, right: (left + right)[:limit],
        order_dependent=True,
    )


def collect_set(limit: int) -> Fold:
    """States hold each value under its identity, in order of arrival."""

    def add(state: dict[str, Any], value: Any) -> dict[str, Any]:
        if len(state) < limit:
            state.setdefault(identity(value), value)
        return state

    def merge(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
        for value in right.values():
            left = add(left, value)
        return left

    return Fold(start=dict, add=add, result=lambda state: list(state.values()), merge=merge, order_dependent=True)


def histogram(limit: int) -> Fold:
    def count(state: dict[str, int], value: str | None, times: int) -> dict[str, int]:
        if value is not None and (value in state or (times > 0 and len(state) < limit)):
            state[value] = state.get(value, 0) + times
            if state[value] < 1:
                del state[value]
        return state

    def merge(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        for value, times in right.items():
            left = count(left, value, times)
        return left

    return Fold(
        start=dict,
        add=lambda state, value: count(state, value, 1),
        result=dict,
        undo=lambda state, value: count(state, value, -1),
        merge=merge,
        order_dependent=True,
    )


def _counted(state: dict[str, list[Any]], value: Any, times: int) -> dict[str, list[Any]]:
    """The count of each value: its identity, the value, the count."""
    entry = state.setdefault(identity(value), [value, 0])
    entry[1] += times
    if entry[1] < 1:
        del state[identity(value)]
    return state


def _merged(left: dict[str, list[Any]], right: dict[str, list[Any]]) -> dict[str, list[Any]]:
    for value, times in right.values():
        left = _counted(left, value, times)
    return left


_ATTR: Final = Fold(
    start=dict,
    add=lambda state, value: _counted(state, value, 1),
    result=lambda state: next(iter(state.values()))[0] if len(state) == 1 else None,
    undo=lambda state, value: _counted(state, value, -1),
    merge=_merged,
)


def _tally(state: dict[str, int], value: Any, times: int) -> dict[str, int]:
    if value is not None:
        key = identity(value)
        state[key] = state.get(key, 0) + times
        if state[key] < 1:
            del state[key]
    return state


def _tallies(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    for key, times in right.items():
        left[key] = left.get(key, 0) + times
    return left


_COUNT_DISTINCT: Final = Fold(
    start=dict,
    add=lambda state, value: _tally(state, value, 1),
    result=len,
    undo=lambda state, value: _tally(state, value, -1),
    merge=_tallies,
)


def _list_accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
    type_ = _one(types)
    return None if type_ is None else AggregateCall(types, pa.list_(type_), collect_list(MOST_COLLECTED))


def _set_accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
    type_ = _one(types)
    return None if type_ is None else AggregateCall(types, pa.list_(type_), collect_set(MOST_COLLECTED))


def _histogram_accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
    return AggregateCall(types, pa.map_(VARCHAR, BIGINT), histogram(MOST_COUNTED)) if _one(types) == VARCHAR else None


def _attr_accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
    type_ = _one(types)
    return None if type_ is None else AggregateCall(types, type_, _ATTR)


def _count_distinct_accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
    return None if _one(types) is None else AggregateCall(types, BIGINT, _COUNT_DISTINCT)


COLLECT_LIST: Final = AggregateFunction(
    "COLLECT_LIST",
    "All values as an array, NULLs too, in the order in which they came. Of a table, the order is not kept.",
    (AggregateOverload("COLLECT_LIST(value ANY)", _list_accept),),
    example="SELECT visitor, COLLECT_LIST(page) FROM clicks GROUP BY visitor",
)
COLLECT_SET: Final = AggregateFunction(
    "COLLECT_SET",
    "The distinct values as an array, NULL too, in the order in which they came first. For streams alone.",
    (AggregateOverload("COLLECT_SET(value ANY)", _set_accept),),
    example="SELECT visitor, COLLECT_SET(page) FROM clicks GROUP BY visitor",
)
HISTOGRAM: Final = AggregateFunction(
    "HISTOGRAM",
    f"How often each text comes, as a map. After {MOST_COUNTED} distinct ones, others are left out; NULLs always.",
    (AggregateOverload("HISTOGRAM(value VARCHAR)", _histogram_accept),),
    example="SELECT page, HISTOGRAM(country) FROM clicks GROUP BY page",
)
ATTR: Final = AggregateFunction(
    "ATTR",
    "The value that all records have; NULL if they do not have the same one.",
    (AggregateOverload("ATTR(value ANY)", _attr_accept),),
    example="SELECT customer, ATTR(country) FROM orders GROUP BY customer",
)
COUNT_DISTINCT: Final = AggregateFunction(
    "COUNT_DISTINCT",
    "The number of distinct values that are not NULL. It is exact, so that a state grows with that number.",
    (AggregateOverload("COUNT_DISTINCT(value ANY)", _count_distinct_accept),),
    example="SELECT page, COUNT_DISTINCT(visitor) FROM clicks GROUP BY page",
)

"""MIN, MAX, TOPK and TOPKDISTINCT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from potok.sql.errors import Refused
from potok.sql.functions.comparing import has_order, ordered, sort_key, unordered
from potok.sql.functions.function import AggregateCall, AggregateFunction, AggregateOverload, Fold, Part
from potok.sql.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIME, TIMESTAMP

_SHORT: Final = (DATE, TIME)
_KINDS: Final = "INT|BIGINT|DECIMAL|DOUBLE|VARCHAR|BYTES|DATE|TIME|TIMESTAMP"


def _is_comparable(type_: pa.DataType) -> bool:
    return has_order(type_) and type_ != BOOLEAN


def _as_integers(columns: Sequence[pa.Array], _: int) -> pa.Array:
    """Integers in the order of the values."""
    column = columns[0]
    if column.type == DOUBLE:
        return ordered(column)
    return (column.cast(INT) if column.type in _SHORT else column).cast(BIGINT)


def _from_integers(parts: Sequence[pa.Array], _: int, result: pa.DataType) -> pa.Array:
    if result == DOUBLE:
        return unordered(parts[0])
    return (parts[0].cast(INT) if result in _SHORT else parts[0]).cast(result)


def _extreme(op: str) -> Callable[[Sequence[pa.DataType], Sequence[Any]], AggregateCall | None]:
    def accept(types: Sequence[pa.DataType], _: Sequence[Any]) -> AggregateCall | None:
        if len(types) != 1 or not _is_comparable(types[0]):
            return None
        type_ = types[0]
        merges = type_ in (INT, BIGINT, DOUBLE, DATE, TIME, TIMESTAMP)
        parts = (Part(op, BIGINT, _as_integers),) if merges else ()
        return AggregateCall(
            types, type_, _extreme_fold(op, type_), parts, _from_integers if merges and type_ != BIGINT else None
        )

    return accept


def _extreme_fold(op: str, type_: pa.DataType) -> Fold:
    key, greatest = sort_key(type_), op == "max"

    def better(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return right if left is None else left
        return right if (key(right) > key(left) if greatest else key(right) < key(left)) else left

    return Fold(start=lambda: None, add=better, result=lambda state: state, merge=better)


def _size(function: str, literals: Sequence[Any]) -> int | None:
    """The k of TOPK."""
    if len(literals) != 1 or not isinstance(literals[0], int) or isinstance(literals[0], bool):
        return None
    if literals[0] < 1:
        raise Refused(f"{function} of the {literals[0]} greatest", hint="write a number from 1 on")
    return literals[0]


def _topk_accept(types: Sequence[pa.DataType], literals: Sequence[Any]) -> AggregateCall | None:
    size = _size("TOPK", literals)
    columns = types[: len(types) - len(literals)]
    if size is None or not columns or not _is_comparable(columns[0]):
        return None
    if len(columns) == 1:
        return AggregateCall(columns, pa.list_(columns[0]), _top_values(size, columns[0]))
    names = ["sort_col", *[f"col{index}" for index in range(len(columns) - 1)]]
    result = pa.list_(pa.struct(list(zip(names, columns, strict=True))))
    return AggregateCall(columns, result, _top_rows(size, columns[0], names))


def _top_values(size: int, type_: pa.DataType) -> Fold:
    key = sort_key(type_)

    def greatest(values: list[Any]) -> list[Any]:
        return sorted(values, key=key, reverse=True)[:size]

    def add(state: list[Any], value: Any) -> list[Any]:
        if value is None or (len(state) == size and key(value) <= key(state[-1])):
            return state
        return greatest([*state, value])

    return Fold(start=list, add=add, result=list, merge=lambda left, right: greatest(left + right))


def _top_rows(size: int, type_: pa.DataType, names: Sequence[str]) -> Fold:
    """The greatest values with other columns of their records. Of equal values, the first arrival comes first."""
    key = sort_key(type_)

    def greatest(rows: list[Any]) -> list[Any]:
        return sorted(rows, key=lambda row: key(row[0]), reverse=True)[:size]

    def add(state: list[Any], *row: Any) -> list[Any]:
        if row[0] is None or (len(state) == size and key(row[0]) <= key(state[-1][0])):
            return state
        return greatest([*state, list(row)])

    return Fold(
        start=list,
        add=add,
        result=lambda state: [dict(zip(names, row, strict=True)) for row in state],
        merge=lambda left, right: greatest(left + right),
        order_dependent=True,
    )


def _topkdistinct_accept(types: Sequence[pa.DataType], literals: Sequence[Any]) -> AggregateCall | None:
    size = _size("TOPKDISTINCT", literals)
    if size is None or len(types) != 2 or not _is_comparable(types[0]):
        return None
    key = sort_key(types[0])

    def greatest(values: list[Any]) -> list[Any]:
        each = {key(value): value for value in values}
        return sorted(each.values(), key=key, reverse=True)[:size]

    def add(state: list[Any], value: Any) -> list[Any]:
        if value is None or (len(state) == size and key(value) <= key(state[-1])):
            return state
        return greatest([*state, value])

    fold = Fold(start=list, add=add, result=list, merge=lambda left, right: greatest(left + right))
    return AggregateCall(types[:1], pa.list_(types[0]), fold)


MIN: Final = AggregateFunction(
    "MIN",
    "The least of the values that are not NULL.",
    (AggregateOverload(f"MIN(value {_KINDS})", _extreme("min")),),
    example="SELECT sensor, MIN(reading) FROM readings GROUP BY sensor",
)
MAX: Final = AggregateFunction(
    "MAX",
    "The greatest of the values that are not NULL. NaN is greater than every number.",
    (AggregateOverload(f"MAX(value {_KINDS})", _extreme("max")),),
    example="SELECT sensor, MAX(reading) FROM readings GROUP BY sensor",
)
TOPK: Final = AggregateFunction(
    "TOPK",
    "The k greatest values, the greatest first. With further columns, an array of structs: sort_col is the value, and"
    " col0, col1, ... are the further columns. Records in which the value is NULL are left out.",
    (AggregateOverload(f"TOPK(value {_KINDS}[, column ANY, ...], k INT)", _topk_accept, columns=-2),),
    example="SELECT shop, TOPK(amount, customer, 3) FROM orders GROUP BY shop",
)
TOPKDISTINCT: Final = AggregateFunction(
    "TOPKDISTINCT",
    "The k greatest distinct values, the greatest first. NULLs are left out.",
    (AggregateOverload(f"TOPKDISTINCT(value {_KINDS}, k INT)", _topkdistinct_accept),),
    example="SELECT shop, TOPKDISTINCT(amount, 3) FROM orders GROUP BY shop",
)

"""Functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions import sizes
from potok.sql.functions.collections import array_order, array_sets
from potok.sql.functions.collections.array_series import GENERATE_SERIES
from potok.sql.functions.collections.lists import flat, is_valid, joined, list_column, numbers, spans
from potok.sql.functions.function import Accepted, Context, Overload, ScalarFunction, Types, by_arrow, widens
from potok.sql.functions.generics import array_item, arrays, plain_types
from potok.sql.types import BIGINT, BOOLEAN, DOUBLE, INT, VARCHAR

_JOINED: Final = (BOOLEAN, INT, BIGINT, DOUBLE, VARCHAR)


def _concat(arguments: Sequence[Any], _: int, __: pa.DataType, ___: Context) -> pa.Array:
    both = joined(flat(arguments[0]), flat(arguments[1]))
    return list_column(both.parts[0], both.lengths, both.valid)


def _accept_join(types: Types) -> Accepted | None:
    given = plain_types(types)
    if given is None or not 1 <= len(given) <= 2 or not all(widens(type_, VARCHAR) for type_ in given[1:]):
        return None
    item = array_item(given[:1])
    if item is None or not (item in _JOINED or pa.types.is_decimal(item)):
        return None
    return Accepted([pa.list_(VARCHAR), VARCHAR][: len(given)], VARCHAR)


def _join(arguments: Sequence[Any], _: int, __: pa.DataType, ___: Context) -> pa.Array:
    items = flat(arguments[0])
    texts = list_column(items.parts[0].fill_null("null"), items.lengths, items.valid)
    return pc.binary_join(texts, arguments[1].fill_null("") if len(arguments) > 1 else ",")


def _accept_slice(types: Types) -> Accepted | None:
    given = plain_types(types)
    if given is None or len(given) != 3 or not all(widens(type_, INT) for type_ in given[1:]):
        return None
    item = array_item(given[:1])
    return None if item is None else Accepted([pa.list_(item), INT, INT], pa.list_(item))


def _slice(arguments: Sequence[Any], _: int, __: pa.DataType, context: Context) -> pa.Array:
    items = flat(arguments[0])
    begin = numbers(arguments[1], 1) - 1
    end = np.where(is_valid(arguments[2]), numbers(arguments[2]), items.lengths)
    inside = items.valid & (begin >= 0) & (end <= items.lengths)
    for row in np.flatnonzero(inside & (begin > end)):
        context.failures[int(row)] = f"SLICE begins at {begin[row] + 1} and ends before it, at {end[row]}"
    valid = inside & (begin <= end)
    lengths = np.where(valid, end - begin, 0)
    return list_column(items.parts[0].take(pa.array(spans(items.starts + begin, lengths))), lengths, valid)


FUNCTIONS: Final = (
    ScalarFunction(
        "ARRAY_CONCAT",
        "array",
        "The items of the first array, then those of the second. If one of them is NULL, it is the other; if both are,"
        " it is NULL.",
        (Overload("ARRAY_CONCAT(first ARRAY<T>, second ARRAY<T>)", arrays(2, pa.list_), _concat),),
        example="ARRAY_CONCAT(ARRAY[1, 2], ARRAY[2, 3])  -- [1, 2, 2, 3]",
    ),
    array_sets.ARRAY_CONTAINS,
    array_sets.ARRAY_DISTINCT,
    array_sets.ARRAY_EXCEPT,
    array_sets.ARRAY_INTERSECT,
    ScalarFunction(
        "ARRAY_JOIN",
        "array",
        "The items as one text, with a separator between them, which is a comma unless given. NULL among the items is"
        " the text null. Items are numbers, text or BOOLEAN.",
        (Overload("ARRAY_JOIN(array ARRAY<T>[, separator VARCHAR])", _accept_join, _join, size=sizes.joined_items),),
        example="ARRAY_JOIN(ARRAY['a', 'b'], '-')  -- a-b",
    ),
    ScalarFunction(
        "ARRAY_LENGTH",
        "array",
        "The number of items. NULL if the array is NULL.",
        (Overload("ARRAY_LENGTH(array ARRAY<T>)", arrays(1, lambda _: INT), by_arrow(pc.list_value_length)),),
        example="ARRAY_LENGTH(ARRAY[7, NULL])  -- 2",
    ),
    array_order.ARRAY_MAX,
    array_order.ARRAY_MIN,
    array_sets.ARRAY_REMOVE,
    array_order.ARRAY_SORT,
    array_sets.ARRAY_UNION,
    GENERATE_SERIES,
    ScalarFunction(
        "SLICE",
        "array",
        "The items from one position to another, both included and counted from 1. NULL instead of a position means the"
        " first or the last one. NULL if a position lies outside of the array.",
        (Overload("SLICE(array ARRAY<T>, from INT, to INT)", _accept_slice, _slice),),
        example="SLICE(ARRAY[5, 6, 7], 2, 3)  -- [6, 7]",
    ),
)

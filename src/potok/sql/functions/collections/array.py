"""Functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.budget import reserve
from potok.sql.functions import sizes
from potok.sql.functions.collections import array_sets
from potok.sql.functions.collections.lists import Flat, Mask, flat, is_valid, joined, list_column, numbers, spans
from potok.sql.functions.comparing import Ints, has_order, ordered
from potok.sql.functions.function import (
    Accepted,
    Compute,
    Context,
    Overload,
    ScalarFunction,
    Types,
    by_arrow,
    takes,
    widens,
)
from potok.sql.functions.generics import array_item, arrays, plain_types
from potok.sql.types import BIGINT, BOOLEAN, DOUBLE, INT, VARCHAR

_UP: Final = pa.array(["ASC", "ASCENDING"])
_DOWN: Final = pa.array(["DESC", "DESCENDING"])


def ascending(items: Flat) -> tuple[Ints, Ints]:
    """Return the indices of the elements, ordered within each row, NULL last; and the number of non-NULL elements of
    each row."""
    keys = pa.table({"row": items.rows, "key": ordered(items.parts[0])})
    order = pc.sort_indices(keys, sort_keys=[("row", "ascending"), ("key", "ascending")])
    filled = np.bincount(items.rows[is_valid(items.parts[0])], minlength=len(items.lengths))
    return order.to_numpy().astype(np.int64), filled


def _accept_sort(types: Types) -> Accepted | None:
    given = plain_types(types)
    if given is None or not 1 <= len(given) <= 2 or not all(widens(type_, VARCHAR) for type_ in given[1:]):
        return None
    item = array_item(given[:1])
    if item is None or not has_order(item):
        return None
    return Accepted([pa.list_(item), VARCHAR][: len(given)], pa.list_(item))


def _sort(arguments: Sequence[Any], rows: int, _: pa.DataType, context: Context) -> pa.Array:
    items = flat(arguments[0])
    order, filled = ascending(items)
    valid, down = items.valid, np.zeros(rows, np.bool_)
    if len(arguments) > 1:
        direction = pc.utf8_upper(arguments[1])
        down = pc.is_in(direction, _DOWN).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(valid & ~is_valid(direction)):
            context.failures[int(row)] = "ARRAY_SORT has no direction: it is NULL"
        valid = valid & (down | pc.is_in(direction, _UP).to_numpy(zero_copy_only=False))
    kept = valid[items.rows]
    values = items.parts[0].take(pa.array(_turned(order, items, filled, down)[kept]))
    return list_column(values, np.where(valid, items.lengths, 0), valid)


def _turned(order: Ints, items: Flat, filled: Ints, down: Any) -> Ints:
    """Return the order, descending in the rows of `down`, with NULL last."""
    rows = items.rows
    at = np.arange(len(order)) - items.starts[rows]
    turn = down[rows] & (at < filled[rows])
    return order[items.starts[rows] + np.where(turn, filled[rows] - 1 - at, at)]


def _extreme(greatest: bool) -> Compute:
    def compute(arguments: Sequence[Any], _: int, __: pa.DataType, ___: Context) -> pa.Array:
        items = flat(arguments[0])
        order, filled = ascending(items)
        at = np.where(filled > 0, items.starts + (filled - 1 if greatest else 0), 0)
        found = order[at] if len(order) else at
        return items.parts[0].take(pa.array(found, mask=filled == 0))

    return compute


def _ordered_item(item: pa.DataType) -> pa.DataType | None:
    return item if has_order(item) else None


ARRAY_MAX: Final = ScalarFunction(
    "ARRAY_MAX",
    "array",
    "The greatest item. NULLs are left out; NULL if nothing else is there. Not for arrays of arrays, maps or structs.",
    (Overload("ARRAY_MAX(array ARRAY<T>)", arrays(1, _ordered_item), _extreme(True)),),
    example="ARRAY_MAX(ARRAY[-1, 2, NULL, 0])  -- 2",
)
ARRAY_MIN: Final = ScalarFunction(
    "ARRAY_MIN",
    "array",
    "The least item. NULLs are left out; NULL if nothing else is there. Not for arrays of arrays, maps or structs.",
    (Overload("ARRAY_MIN(array ARRAY<T>)", arrays(1, _ordered_item), _extreme(False)),),
    example="ARRAY_MIN(ARRAY[-1, 2, NULL, 0])  -- -1",
)
ARRAY_SORT: Final = ScalarFunction(
    "ARRAY_SORT",
    "array",
    "The items in order, ascending ('ASC') unless 'DESC' is given, with NULLs at the end. NULL if the array is NULL or"
    " the direction is neither. Not for arrays of arrays, maps or structs.",
    (Overload("ARRAY_SORT(array ARRAY<T>[, direction VARCHAR])", _accept_sort, _sort),),
    example="ARRAY_SORT(ARRAY[2, NULL, 0, 1], 'DESC')  -- [2, 1, 0, NULL]",
)


LONGEST_SERIES: Final = 100_000
"""A longer series is NULL, so that one record cannot exhaust the memory."""


def _series(arguments: Sequence[Any], _: int, result: pa.DataType, context: Context) -> pa.Array:
    valid = np.logical_and.reduce([is_valid(argument) for argument in arguments])
    start, end = numbers(arguments[0]), numbers(arguments[1])
    step = numbers(arguments[2]) if len(arguments) > 2 else np.where(end > start, 1, -1)
    # A distance beyond 2^63 is longer than any series.
    far = np.where(end > start, end - start, start - end)
    lengths = np.where(step == 0, 0, 1 + far // np.where(step == 0, 1, np.abs(step)))
    for bad, reason in (
        (step == 0, "the step of GENERATE_SERIES is 0"),
        (((end > start) & (step < 0)) | ((end < start) & (step > 0)), "the step of GENERATE_SERIES has the wrong sign"),
        ((far < 0) | (lengths > LONGEST_SERIES), f"GENERATE_SERIES would give more than {LONGEST_SERIES} items"),
    ):
        valid = _without(valid, bad, reason, context)
    lengths = np.where(valid, lengths, 0)
    reserve(5 * 8 * int(lengths.sum()))
    at = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    items = np.repeat(start, lengths) + at * np.repeat(step, lengths)
    return list_column(pa.array(items, BIGINT).cast(result.value_type), lengths, valid)


def _without(valid: Mask, bad: Mask, reason: str, context: Context) -> Mask:
    for row in np.flatnonzero(valid & bad):
        context.failures[int(row)] = reason
    return valid & ~bad


GENERATE_SERIES: Final = ScalarFunction(
    "GENERATE_SERIES",
    "array",
    "The numbers from a start to an end, both included, by a step, which is 1 or -1 unless given. NULL if the step is 0"
    f" or leads away from the end, or if there would be more than {LONGEST_SERIES} numbers.",
    (
        Overload(
            "GENERATE_SERIES(start INT, end INT[, step INT])",
            takes(INT, INT, INT, result=pa.list_(INT), optional=1),
            _series,
        ),
        Overload(
            "GENERATE_SERIES(start BIGINT, end BIGINT[, step INT])",
            takes(BIGINT, BIGINT, INT, result=pa.list_(BIGINT), optional=1),
            _series,
        ),
    ),
    example="GENERATE_SERIES(1, 7, 3)  -- [1, 4, 7]",
)


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
    ARRAY_MAX,
    ARRAY_MIN,
    array_sets.ARRAY_REMOVE,
    ARRAY_SORT,
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

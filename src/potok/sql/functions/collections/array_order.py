"""Functions that order the elements of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.collections.lists import Flat, flat, is_valid, list_column
from potok.sql.functions.comparing import Ints, has_order, ordered
from potok.sql.functions.function import Accepted, Compute, Context, Overload, ScalarFunction, Types, widens
from potok.sql.functions.generics import array_item, arrays, plain_types
from potok.sql.types import VARCHAR

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

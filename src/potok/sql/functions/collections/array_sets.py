"""Set functions over arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.collections.lists import (
    Flat,
    Mask,
    first_of_each,
    flat,
    in_rows,
    is_valid,
    joined,
    only,
    row_keys,
)
from potok.sql.functions.comparing import Ints, codes
from potok.sql.functions.function import Compute, Context, Overload, ScalarFunction
from potok.sql.functions.generics import array_and_item, arrays
from potok.sql.types import BOOLEAN


def _matches(arguments: Sequence[Any]) -> tuple[Flat, Mask]:
    """Return the elements of arrays, and which of them equal the value of their row. NULL equals NULL."""
    items, value = flat(arguments[0]), arguments[1]
    item_codes, value_codes = codes([items.parts[0], value])
    return items, item_codes == value_codes[items.rows]


def _contains(arguments: Sequence[Any], rows: int, _: pa.DataType, __: Context) -> pa.Array:
    items, equal = _matches(arguments)
    return pa.array(np.bincount(items.rows[equal], minlength=rows) > 0, BOOLEAN)


def _remove(arguments: Sequence[Any], _: int, __: pa.DataType, ___: Context) -> pa.Array:
    items, equal = _matches(arguments)
    return only(items, np.flatnonzero(~equal))


def _distinct(items: Flat) -> pa.Array:
    (found,) = codes([items.parts[0]])
    return only(items, first_of_each(row_keys(items.rows, found, len(found))))


def _among(left: Ints, right: Ints) -> Mask:
    # With a hash table; numpy would sort both.
    found: Mask = pc.is_in(pa.array(left), pa.array(right)).to_numpy(zero_copy_only=False)
    return found


def _of_two(choose: Callable[[Ints, Ints], Mask]) -> Compute:
    """Return the distinct elements of the first array that are selected, given those of the second."""

    def compute(arguments: Sequence[Any], _: int, __: pa.DataType, ___: Context) -> pa.Array:
        left, right = flat(arguments[0]), flat(arguments[1])
        left_keys, right_keys = in_rows(left, right)
        first = first_of_each(left_keys)
        both = Flat(left.starts, left.lengths, left.valid & right.valid, left.parts)
        return only(both, first[choose(left_keys[first], right_keys) & both.valid[left.rows[first]]])

    return compute


def _union(arguments: Sequence[Any], _: int, __: pa.DataType, ___: Context) -> pa.Array:
    both = is_valid(arguments[0]) & is_valid(arguments[1])
    left, right = (_without(flat(argument), both) for argument in arguments)
    return _distinct(joined(left, right))


def _without(items: Flat, retained: Mask) -> Flat:
    """Return the same, but NULL where not selected."""
    if retained.all() or (items.valid == retained).all():
        return items
    chosen = np.flatnonzero(retained[items.rows])
    lengths = np.where(retained, items.lengths, 0)
    part = items.parts[0].take(pa.array(chosen))
    return Flat(np.cumsum(lengths) - lengths, lengths, items.valid & retained, (part,))


ARRAY_CONTAINS: Final = ScalarFunction(
    "ARRAY_CONTAINS",
    "array",
    "Whether an array has an item; NULL may be asked for too. FALSE if the array is NULL.",
    (Overload("ARRAY_CONTAINS(array ARRAY<T>, item T)", array_and_item(lambda _: BOOLEAN), _contains),),
    example="ARRAY_CONTAINS(ARRAY[1, 2, 3], 3)  -- true",
)
ARRAY_DISTINCT: Final = ScalarFunction(
    "ARRAY_DISTINCT",
    "array",
    "Each item once, NULL too, in the order in which they come first. NULL if the array is NULL.",
    (
        Overload(
            "ARRAY_DISTINCT(array ARRAY<T>)",
            arrays(1, pa.list_),
            lambda arguments, _, __, ___: _distinct(flat(arguments[0])),
        ),
    ),
    example="ARRAY_DISTINCT(ARRAY[1, 1, 2])  -- [1, 2]",
)
ARRAY_EXCEPT: Final = ScalarFunction(
    "ARRAY_EXCEPT",
    "array",
    "The distinct items of the first array that are not in the second. NULL if either is NULL.",
    (
        Overload(
            "ARRAY_EXCEPT(first ARRAY<T>, second ARRAY<T>)",
            arrays(2, pa.list_),
            _of_two(lambda left, right: ~_among(left, right)),
        ),
    ),
    example="ARRAY_EXCEPT(ARRAY[1, 2, 3, 1], ARRAY[2, 3])  -- [1]",
)
ARRAY_INTERSECT: Final = ScalarFunction(
    "ARRAY_INTERSECT",
    "array",
    "The distinct items of the first array that are in the second too. NULL if either is NULL.",
    (Overload("ARRAY_INTERSECT(first ARRAY<T>, second ARRAY<T>)", arrays(2, pa.list_), _of_two(_among)),),
    example="ARRAY_INTERSECT(ARRAY[1, 2, 3, 1], ARRAY[2, 1])  -- [1, 2]",
)
ARRAY_REMOVE: Final = ScalarFunction(
    "ARRAY_REMOVE",
    "array",
    "The array without all items that are equal to a value; with NULL, without its NULLs. NULL if the array is NULL.",
    (Overload("ARRAY_REMOVE(array ARRAY<T>, item T)", array_and_item(pa.list_), _remove),),
    example="ARRAY_REMOVE(ARRAY[1, 2, 3, 2, 1], 2)  -- [1, 3, 1]",
)
ARRAY_UNION: Final = ScalarFunction(
    "ARRAY_UNION",
    "array",
    "The distinct items of both arrays, in the order in which they come. NULL if either is NULL.",
    (Overload("ARRAY_UNION(first ARRAY<T>, second ARRAY<T>)", arrays(2, pa.list_), _union),),
    example="ARRAY_UNION(ARRAY[1, 2, 1], ARRAY[3, 1])  -- [1, 2, 3]",
)

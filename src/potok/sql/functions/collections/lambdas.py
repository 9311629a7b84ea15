"""Functions with lambdas: all elements of all rows are passed to the lambda at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.collections.lists import Mask, flat, is_valid, list_column, map_column, row_keys
from potok.sql.functions.collections.map import entries_of
from potok.sql.functions.comparing import Ints, codes, has_order
from potok.sql.functions.function import Accepted, Context, LambdaShape, Overload, ScalarFunction, Types, widens
from potok.sql.types import BOOLEAN, NULL, VARCHAR


def _items(collection: pa.DataType | LambdaShape, of_maps: bool) -> Sequence[pa.DataType] | None:
    """Return the types of the parameters for each element: the element, or key and value."""
    if isinstance(collection, LambdaShape):
        return None
    if of_maps:
        return (collection.key_type, collection.item_type) if pa.types.is_map(collection) else None
    return (collection.value_type,) if pa.types.is_list(collection) else None


def _item_types(of_maps: bool) -> Callable[[Types, int], Sequence[pa.DataType]]:
    return lambda types, _: _items(types[0], of_maps) or ()


def _takes(shape: pa.DataType | LambdaShape, parameters: int) -> LambdaShape | None:
    """Return the shape of a lambda with a number of parameters."""
    return shape if isinstance(shape, LambdaShape) and shape.parameters == parameters else None


def _filter_accept(of_maps: bool) -> Callable[[Types], Accepted | None]:
    def accept(types: Types) -> Accepted | None:
        given = _items(types[0], of_maps) if len(types) == 2 else None
        shape = _takes(types[1], len(given)) if given is not None else None
        if shape is None or shape.body not in (BOOLEAN, NULL, None):
            return None
        return Accepted([types[0], LambdaShape(shape.parameters, BOOLEAN)], types[0])

    return accept


def _filter(arguments: Sequence[Any], _: int, __: pa.DataType, ___: Context) -> pa.Array:
    items, keeps = flat(arguments[0]), arguments[1]
    rows = items.rows
    kept = pc.fill_null(keeps(items.parts, pa.array(rows)), False)
    chosen = np.flatnonzero(kept.to_numpy(zero_copy_only=False))
    parts = [part.take(pa.array(chosen)) for part in items.parts]
    lengths = np.bincount(rows[chosen], minlength=len(items.lengths))
    return _collection(parts, lengths, items.valid)


def _collection(parts: Sequence[pa.Array], lengths: Ints, valid: Mask) -> pa.Array:
    if len(parts) == 1:
        return list_column(parts[0], lengths, valid)
    return map_column(parts[0], parts[1], lengths, valid)


def _transform_array_accept(types: Types) -> Accepted | None:
    given = _items(types[0], False) if len(types) == 2 else None
    shape = _takes(types[1], 1) if given is not None else None
    if shape is None or shape.body == NULL:
        return None
    return Accepted(types, pa.list_(_result(shape)))


def _transform_map_accept(types: Types) -> Accepted | None:
    given = _items(types[0], True) if len(types) == 3 else None
    shapes = [_takes(shape, 2) for shape in types[1:]] if given is not None else []
    key, value = shapes or (None, None)
    if key is None or value is None or NULL in (key.body, value.body):
        return None
    if key.body is not None and not has_order(key.body):
        return None
    return Accepted(types, pa.map_(_result(key), _result(value)))


def _result(shape: LambdaShape) -> pa.DataType:
    """Return the result type of a lambda; while it is unknown, any type is accepted."""
    return VARCHAR if shape.body is None else shape.body


def _transform_array(arguments: Sequence[Any], _: int, __: pa.DataType, ___: Context) -> pa.Array:
    items = flat(arguments[0])
    return list_column(arguments[1](items.parts, pa.array(items.rows)), items.lengths, items.valid)


def _transform_map(arguments: Sequence[Any], _: int, __: pa.DataType, context: Context) -> pa.Array:
    entries = flat(arguments[0])
    rows = entries.rows
    keys, values = (part(entries.parts, pa.array(rows)) for part in arguments[1:])
    missing, twice = ~is_valid(keys), _again(rows, keys)
    for index in np.flatnonzero(missing | twice):
        what = "NULL" if missing[index] else f"{keys[int(index)]} more than once"
        context.failures.setdefault(int(rows[index]), f"TRANSFORM makes the key {what}")
    bad = np.bincount(rows[missing | twice], minlength=len(entries.lengths)) > 0
    valid = entries.valid & ~bad
    chosen = pa.array(np.flatnonzero(valid[rows]))
    return map_column(keys.take(chosen), values.take(chosen), np.where(valid, entries.lengths, 0), valid)


def _again(rows: Ints, keys: pa.Array) -> Mask:
    """Return which keys equal another key of the same row."""
    (found,) = codes([keys])
    again = np.ones(len(rows), np.bool_)
    again[np.unique(row_keys(rows, found, len(found)), return_index=True)[1]] = False
    return again


def _reduce_types(of_maps: bool) -> Callable[[Types, int], Sequence[pa.DataType]]:
    def types_of(types: Types, _: int) -> Sequence[pa.DataType]:
        given = _items(types[0], of_maps)
        state = types[1]
        return () if given is None or isinstance(state, LambdaShape) else (state, *given)

    return types_of


def _reduce_accept(of_maps: bool) -> Callable[[Types], Accepted | None]:
    def accept(types: Types) -> Accepted | None:
        given = _items(types[0], of_maps) if len(types) == 3 else None
        shape = _takes(types[2], 1 + len(given)) if given is not None else None
        state = types[1] if shape is not None else NULL
        if shape is None or isinstance(state, LambdaShape) or state == NULL:
            return None
        if shape.body is not None and not widens(shape.body, state):
            return None
        return Accepted([types[0], state, LambdaShape(shape.parameters, state)], state)

    return accept


def _reduce(arguments: Sequence[Any], rows: int, _: pa.DataType, __: Context) -> pa.Array:
    """Process position by position. With the longest rows first, the rows that still have an element are always a
    prefix."""
    column, state, step = arguments
    items = entries_of(column) if pa.types.is_map(column.type) else flat(column)
    lengths = np.where(is_valid(state), items.lengths, 0)
    order = np.argsort(-lengths, kind="stable")
    state = state.take(pa.array(order))
    counts = np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0)), side="left")
    done: list[pa.Array] = []
    for position, count in enumerate(counts):
        if count < len(state):
            # Copy: a slice would keep the buffers of all rows alive.
            done.append(state.take(pa.array(np.arange(int(count), len(state)))))
        active = order[:count]
        parts = [part.take(pa.array(items.starts[active] + position)) for part in items.parts]
        state = step([state.slice(0, int(count)), *parts], pa.array(active))
    inverse = np.empty(rows, np.int64)
    inverse[order] = np.arange(rows)
    return pa.concat_arrays([state, *reversed(done)]).take(pa.array(inverse))


FUNCTIONS: Final = (
    ScalarFunction(
        "FILTER",
        "lambda",
        "The items of an array, or the entries of a map, for which a lambda is true.",
        (
            Overload("FILTER(array ARRAY<T>, item => BOOLEAN)", _filter_accept(False), _filter, _item_types(False)),
            Overload(
                "FILTER(map MAP<K, V>, (key, value) => BOOLEAN)", _filter_accept(True), _filter, _item_types(True)
            ),
        ),
        example="FILTER(ARRAY[1, 5, 3], x => x > 2)  -- [5, 3]",
    ),
    ScalarFunction(
        "REDUCE",
        "lambda",
        "What a lambda makes of a start and all items, one after the other: it is given what it made last, and the next"
        " item (of a map, key and value). NULL if the start is NULL; the start, if the collection is NULL. The result"
        " of the lambda is of the type of the start.",
        (
            Overload(
                "REDUCE(array ARRAY<T>, start S, (state, item) => S)",
                _reduce_accept(False),
                _reduce,
                _reduce_types(False),
            ),
            Overload(
                "REDUCE(map MAP<K, V>, start S, (state, key, value) => S)",
                _reduce_accept(True),
                _reduce,
                _reduce_types(True),
            ),
        ),
        example="REDUCE(ARRAY[2, 3, 4], 1, (s, x) => s * x)  -- 24",
    ),
    ScalarFunction(
        "TRANSFORM",
        "lambda",
        "What a lambda makes of each item of an array; of a map, what two lambdas make of key and value. NULL if the"
        " collection is NULL, or if two entries would have the same key.",
        (
            Overload(
                "TRANSFORM(array ARRAY<T>, item => R)", _transform_array_accept, _transform_array, _item_types(False)
            ),
            Overload(
                "TRANSFORM(map MAP<K, V>, (key, value) => R, (key, value) => S)",
                _transform_map_accept,
                _transform_map,
                _item_types(True),
            ),
        ),
        example="TRANSFORM(ARRAY[1, 2], x => x * 10)  -- [10, 20]",
    ),
)

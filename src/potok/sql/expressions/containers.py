"""Compute arrays, maps and structs, and access to their elements, over columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.budget import PER_ITEM, reserve, reserve_objects, reserve_taken, size_of
from potok.sql.expressions.conversions.casts import compact
from potok.sql.expressions.conversions.numbers import note
from potok.sql.expressions.frame import Values, reserve_spread, spread
from potok.sql.functions.function import Context
from potok.sql.types import NULL_KEY, VARCHAR


def item(lists: pa.Array, index: Values, rows: int) -> pa.Array:
    """Return the element at each index, counted from 1 or from the end; NULL if there is none."""
    lists = compact(lists)
    at = spread(index, rows)
    missing = pc.or_(lists.is_null(), at.is_null()).to_numpy(zero_copy_only=False)
    wanted = at.fill_null(0).to_numpy().astype(np.int64)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    sizes = np.diff(offsets)
    indexes = np.where(wanted > 0, wanted - 1, sizes + wanted)
    outside = (wanted == 0) | (indexes < 0) | (indexes >= sizes)
    return lists.values.take(pa.array(offsets[:-1] + indexes, pa.int64(), mask=missing | outside))


def lookup(maps: pa.Array, key: Values, rows: int) -> pa.Array:
    """Return the value for each key; NULL if there is none."""
    maps = compact(maps)
    offsets = maps.offsets.to_numpy()
    owner = np.repeat(np.arange(rows), np.diff(offsets))
    if not isinstance(key, pa.Scalar):
        reserve_taken(key, owner)
    wanted = key if isinstance(key, pa.Scalar) else key.take(pa.array(owner))
    hits = np.flatnonzero(pc.fill_null(pc.equal(maps.keys, wanted), False).to_numpy(zero_copy_only=False))
    indexes = np.full(rows, -1, np.int64)
    indexes[owner[hits]] = hits
    return maps.items.take(pa.array(indexes, mask=indexes < 0))


def make_array(items: Sequence[Values], type_: pa.DataType, rows: int) -> pa.Array:
    width = len(items)
    for part in items:
        reserve_spread(part, rows)
    reserve(sum(size_of(part) for part in items if not isinstance(part, pa.Scalar)) + PER_ITEM * width * rows)
    stacked = pa.concat_arrays([spread(part, rows) for part in items])
    order = np.arange(rows * width).reshape(width, rows).T.ravel()
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * width, pa.int32())
    return pa.ListArray.from_arrays(offsets, stacked.take(pa.array(order)), type=type_)


def make_map(
    keys: Sequence[Values], items: Sequence[Values], type_: pa.DataType, rows: int, context: Context
) -> pa.Array:
    """Build maps. The last one of duplicate keys wins. A NULL among string keys is 'null', as in ksqlDB; among other
    keys it makes the row NULL and is reported."""
    if type_.key_type == VARCHAR:
        keys = [pc.fill_null(key, NULL_KEY) for key in keys]
    if all(isinstance(key, pa.Scalar) and key.is_valid for key in keys):
        last = {key.as_py(): at for at, key in enumerate(keys)}
        kept = list(last.values())
        inner = make_array([keys[at] for at in kept], pa.list_(type_.key_type), rows)
        values = make_array([items[at] for at in kept], pa.list_(type_.item_type), rows)
        return pa.MapArray.from_arrays(inner.offsets, inner.values, values.values, type=type_)
    columns = [spread(part, rows) for part in (*keys, *items)]
    reserve_objects(columns)
    lost = np.logical_or.reduce([c.is_null().to_numpy(zero_copy_only=False) for c in columns[: len(keys)]])
    note(context, pa.array(lost), "a key of a map is NULL")
    values_by_row = zip(*(column.to_pylist() for column in columns), strict=True)
    found = [
        None if bad else list(dict(zip(row[: len(keys)], row[len(keys) :], strict=True)).items())
        for bad, row in zip(lost.tolist(), values_by_row, strict=True)
    ]
    return pa.array(found, type_)


def make_struct(items: Sequence[Values], type_: pa.DataType, rows: int) -> pa.Array:
    if not items:
        return pa.array([{}] * rows, type_)
    return pa.StructArray.from_arrays([spread(part, rows) for part in items], fields=list(type_))

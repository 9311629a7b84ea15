"""Functions of maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.collections.array import ascending
from potok.sql.functions.collections.lists import (
    Flat,
    first_of_each,
    flat,
    is_valid,
    joined,
    list_column,
    map_column,
    row_keys,
)
from potok.sql.functions.comparing import Ints, codes, has_order
from potok.sql.functions.function import Accepted, Context, Overload, ScalarFunction, Types, widens
from potok.sql.functions.generics import array_item, map_type, plain_types
from potok.sql.types import BIGINT, BOOLEAN, INT, NULL_KEY, VARCHAR


def unique_keys(entries: Flat) -> pa.Array:
    """Build maps from entries with duplicate keys: a key keeps its first position and its last value."""
    rows = entries.rows
    (found,) = codes([entries.parts[0]])
    keys = row_keys(rows, found, len(found))
    first = first_of_each(keys)
    distinct, inverse = np.unique(keys, return_inverse=True)
    last = np.zeros(len(distinct), np.int64)
    last[inverse] = np.arange(len(keys))
    values = entries.parts[1].take(pa.array(last[inverse[first]]))
    lengths = np.bincount(rows[first], minlength=len(entries.lengths))
    return map_column(entries.parts[0].take(pa.array(first)), values, lengths, entries.valid)


def _accept_as_map(types: Types) -> Accepted | None:
    given = plain_types(types)
    if given is None or len(given) != 2:
        return None
    key, item = array_item(given[:1]), array_item(given[1:])
    if key is None or item is None or not has_order(key):
        return None
    return Accepted([pa.list_(key), pa.list_(item)], pa.map_(key, item))


def _as_map(arguments: Sequence[Any], _: int, __: pa.DataType, context: Context) -> pa.Array:
    keys, items = flat(arguments[0]), flat(arguments[1])
    if keys.parts[0].type == VARCHAR:
        keys = replace(keys, parts=(pc.fill_null(keys.parts[0], NULL_KEY),))
    nameless = np.bincount(keys.rows[~is_valid(keys.parts[0])], minlength=len(keys.lengths)) > 0
    valid = keys.valid & items.valid & ~nameless
    for row in np.flatnonzero(keys.valid & items.valid & nameless):
        context.failures[int(row)] = "a key of AS_MAP is NULL"
    chosen = np.flatnonzero(valid[keys.rows])
    rows = keys.rows[chosen]
    at = chosen - keys.starts[rows]
    # A key without a value maps to NULL; a value without a key is ignored.
    values = items.parts[0].take(pa.array(items.starts[rows] + at, mask=at >= items.lengths[rows]))
    lengths = np.where(valid, keys.lengths, 0)
    names = keys.parts[0].take(pa.array(chosen))
    return unique_keys(Flat(np.cumsum(lengths) - lengths, lengths, valid, (names, values)))


def _accept_entries(types: Types) -> Accepted | None:
    given = plain_types(types)
    if given is None or len(given) != 2 or not widens(given[1], BOOLEAN):
        return None
    map_ = map_type(given[:1])
    if map_ is None or not has_order(map_.key_type):
        return None
    entry = pa.struct([("K", map_.key_type), ("V", map_.item_type)])
    return Accepted([map_, BOOLEAN], pa.list_(entry))


def _entries(arguments: Sequence[Any], _: int, result: pa.DataType, __: Context) -> pa.Array:
    entries = entries_of(arguments[0])
    order, ___ = ascending(entries)
    as_they_are = np.arange(len(order))
    by_key = arguments[1].fill_null(False).to_numpy(zero_copy_only=False)
    valid = entries.valid & is_valid(arguments[1])
    chosen = pa.array(np.where(by_key[entries.rows], order, as_they_are)[valid[entries.rows]])
    fields = [result.value_type.field(index) for index in range(2)]
    structs = pa.StructArray.from_arrays([part.take(chosen) for part in entries.parts], fields=fields)
    return list_column(structs, np.where(valid, entries.lengths, 0), valid)


def _accept_keys(types: Types) -> Accepted | None:
    map_ = _one_map(types)
    return None if map_ is None else Accepted([map_], pa.list_(map_.key_type))


def _accept_values(types: Types) -> Accepted | None:
    map_ = _one_map(types)
    return None if map_ is None else Accepted([map_], pa.list_(map_.item_type))


def _one_map(types: Types) -> pa.DataType | None:
    given = plain_types(types)
    return map_type(given) if given is not None and len(given) == 1 else None


def _keys(arguments: Sequence[Any], _: int, __: pa.DataType, ___: Context) -> pa.Array:
    entries = entries_of(arguments[0])
    return list_column(entries.parts[0], entries.lengths, entries.valid)


def _values(arguments: Sequence[Any], _: int, __: pa.DataType, ___: Context) -> pa.Array:
    entries = entries_of(arguments[0])
    return list_column(entries.parts[1], entries.lengths, entries.valid)


def _accept_union(types: Types) -> Accepted | None:
    given = plain_types(types)
    map_ = map_type(given) if given is not None and len(given) == 2 else None
    return None if map_ is None else Accepted([map_, map_], map_)


def _union(arguments: Sequence[Any], _: int, __: pa.DataType, ___: Context) -> pa.Array:
    return unique_keys(joined(flat(arguments[0]), flat(arguments[1])))


FUNCTIONS: Final = (
    ScalarFunction(
        "AS_MAP",
        "map",
        "A map of an array of keys and an array of values. Keys that have no value are mapped to NULL; of a key that"
        " comes again the last value counts. NULL if an array or a key is NULL.",
        (Overload("AS_MAP(keys ARRAY<K>, values ARRAY<V>)", _accept_as_map, _as_map),),
        example="AS_MAP(ARRAY['a', 'b'], ARRAY[1, 2])  -- {a=1, b=2}",
    ),
    ScalarFunction(
        "ENTRIES",
        "map",
        "The entries of a map as an array of structs with the fields K and V, sorted by key if asked for.",
        (Overload("ENTRIES(map MAP<K, V>, sorted BOOLEAN)", _accept_entries, _entries),),
        example="ENTRIES(MAP('b' := 2, 'a' := 1), TRUE)  -- [{K=a, V=1}, {K=b, V=2}]",
    ),
    ScalarFunction(
        "MAP_KEYS",
        "map",
        "The keys of a map as an array, in the order of Java's HashMap. NULL if the map is NULL.",
        (Overload("MAP_KEYS(map MAP<K, V>)", _accept_keys, _keys),),
        example="MAP_KEYS(MAP('a' := 10, 'b' := 20))  -- [a, b]",
    ),
    ScalarFunction(
        "MAP_UNION",
        "map",
        "The entries of both maps; where both have a key, the value of the second. NULL if both maps are NULL.",
        (Overload("MAP_UNION(first MAP<K, V>, second MAP<K, V>)", _accept_union, _union),),
        example="MAP_UNION(MAP('a' := 10), MAP('a' := 50, 'b' := 20))  -- {a=50, b=20}",
    ),
    ScalarFunction(
        "MAP_VALUES",
        "map",
        "The values of a map as an array, in the order of MAP_KEYS. NULL if the map is NULL.",
        (Overload("MAP_VALUES(map MAP<K, V>)", _accept_values, _values),),
        example="MAP_VALUES(MAP('a' := 10, 'b' := 20))  -- [10, 20]",
    ),
)


def entries_of(column: pa.Array) -> Flat:
    """Order the entries of each map by the bucket of their key, then by insertion."""
    entries = flat(column)
    keys = entries.parts[0]
    if keys.type not in (VARCHAR, INT, BIGINT, BOOLEAN) or entries.lengths.max(initial=0) < 2:
        return entries
    rows = entries.rows
    buckets = _hashes(keys) & (_capacities(entries.lengths)[rows] - 1)
    order = pa.array(np.lexsort((buckets, rows)))
    return replace(entries, parts=tuple(part.take(order) for part in entries.parts))


def _capacities(sizes: Ints) -> Ints:
    """Return the number of buckets for a map of this size: a power of two, at most three quarters full."""
    wanted = np.maximum(1, -(-sizes * 4 // 3))
    found: Ints = 1 << np.ceil(np.log2(wanted)).astype(np.int64)
    return found


def _hashes(keys: pa.Array) -> Ints:
    coded = keys.dictionary_encode()
    spread = np.array([_spread(_hash(key, keys.type)) for key in coded.dictionary.to_pylist()], np.int64)
    found: Ints = spread[coded.indices.to_numpy(zero_copy_only=False)]
    return found


def _spread(code: int) -> int:
    return code ^ (code >> 16)


def _hash(key: Any, type_: pa.DataType) -> int:
    """Return `hashCode` as an unsigned 32-bit number."""
    if type_ == BOOLEAN:
        return 1231 if key else 1237
    if type_ == VARCHAR:
        units = np.frombuffer(key.encode("utf-16-le", "surrogatepass"), np.uint16)
        code = 0
        for unit in units.tolist():
            code = (code * 31 + unit) & 0xFFFFFFFF
        return code
    bits: int = key & 0xFFFFFFFFFFFFFFFF
    return (bits ^ (bits >> 32)) & 0xFFFFFFFF if type_ == BIGINT else bits & 0xFFFFFFFF

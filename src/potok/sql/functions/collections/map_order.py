"""The iteration order of maps in ksqlDB, which is that of Java's HashMap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from potok.sql.functions.collections.lists import Flat, flat
from potok.sql.functions.comparing import Ints
from potok.sql.types import BIGINT, BOOLEAN, INT, VARCHAR


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

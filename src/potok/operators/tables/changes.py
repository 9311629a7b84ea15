"""Changes of tables as columns: one per row and batch, and how two of them are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.operators.core.chunk import Chunk, Column, concat
from potok.records.keys import encode_keys

Rows = npt.NDArray[np.intp]


def settle(chunks: Sequence[Chunk]) -> tuple[list[bytes], Chunk]:
    """Return one change per key, from the value before the first change to the value after the last; and the keys as
    bytes."""
    chunk = concat(chunks)
    keys: list[bytes] = encode_keys(chunk.key).to_pylist()
    last = {key: row for row, key in enumerate(keys)}
    if len(last) == len(keys):
        return keys, chunk
    first: dict[bytes, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    distinct = list(last)
    settled = chunk.take(np.fromiter(last.values(), np.intp, len(last)))
    assert chunk.before is not None
    settled.before = pick(chunk.before, np.array([first[key] for key in distinct], np.intp))
    return distinct, settled


def pick(column: Column, rows: Rows) -> Column:
    return [column[row] for row in rows.tolist()] if isinstance(column, list) else column.take(pa.array(rows))


def scatter(column: Column, rows: Rows, count: int) -> Column:
    """Return a column of `count` rows with these at the given rows, and null elsewhere."""
    if len(rows) == count:
        return column
    if isinstance(column, list):
        spread: list[Any] = [None] * count
        for row, value in zip(rows.tolist(), column, strict=True):
            spread[row] = value
        return spread
    indexes = np.full(count, -1)
    indexes[rows] = np.arange(len(rows))
    return column.take(pa.array(indexes, mask=indexes < 0))


def present(column: Column) -> npt.NDArray[np.bool_]:
    if isinstance(column, list):
        return np.fromiter((item is not None for item in column), np.bool_, len(column))
    return ~np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)


def blank(column: Column, keep: npt.NDArray[np.bool_]) -> Column:
    """Return the column with null where `keep` is false."""
    if isinstance(column, list):
        return [item if kept else None for item, kept in zip(column, keep, strict=True)]
    rows = np.where(keep, np.arange(len(column)), -1)
    return column.take(pa.array(rows, mask=~keep))


def same(left: Any, right: Any) -> bool:
    """Whether two values are the same data: equal, where 1, 1.0 and True are different."""
    if left is right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[name]) for name, value in left.items())
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    try:
        return bool(left == right)
    except Exception:  # noqa: BLE001 - an object of the user's own may answer anything
        return False

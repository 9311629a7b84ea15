"""Columns of arrays and maps as flat elements, with the offset and length of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.sql.functions.comparing import Ints, codes

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Flat:
    """The elements of all rows. A NULL row has none."""

    starts: Ints
    lengths: Ints
    valid: Mask
    parts: tuple[pa.Array, ...]
    """The elements of arrays; the keys and the values of maps."""

    @property
    def rows(self) -> Ints:
        """The row of each element."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)


def flat(column: pa.Array) -> Flat:
    """Return the elements of a column, without gaps and in row order."""
    parts = (column.keys, column.items) if pa.types.is_map(column.type) else (column.values,)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    offsets = column.offsets.to_numpy().astype(np.int64)
    lengths = np.where(valid, np.diff(offsets), 0)
    first, last = int(offsets[0]), int(offsets[-1])
    if last - first == lengths.sum():
        parts = tuple(part.slice(first, last - first) for part in parts)
    else:
        indices = pa.array(spans(offsets[:-1], lengths))
        parts = tuple(part.take(indices) for part in parts)
    return Flat(np.cumsum(lengths) - lengths, lengths, valid, parts)


def spans(starts: Ints, lengths: Ints) -> Ints:
    """Return consecutive indices from each start, concatenated."""
    before = np.cumsum(lengths) - lengths
    indices: Ints = np.arange(int(lengths.sum()), dtype=np.int64) + np.repeat(starts - before, lengths)
    return indices


def list_column(values: pa.Array, lengths: Ints, valid: Mask) -> pa.Array:
    """Build arrays with these lengths; NULL where not valid."""
    return pa.ListArray.from_arrays(_offsets(lengths, valid), values)


def map_column(keys: pa.Array, items: pa.Array, lengths: Ints, valid: Mask) -> pa.Array:
    return pa.MapArray.from_arrays(_offsets(lengths, valid), keys, items)


def _offsets(lengths: Ints, valid: Mask) -> pa.Array:
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise OverflowError("the arrays of one batch have more than 2147483647 items together")
    # A missing offset makes its row NULL; the last one is the end of the last row and never missing.
    return pa.array(offsets.astype(np.int32), mask=np.concatenate([~valid, [False]]))


def only(items: Flat, chosen: Ints) -> pa.Array:
    """Return arrays with only the elements at these indices, which are ordered."""
    lengths = np.bincount(items.rows[chosen], minlength=len(items.lengths))
    return list_column(items.parts[0].take(pa.array(chosen)), lengths, items.valid)


def joined(left: Flat, right: Flat) -> Flat:
    """Concatenate the elements of both sides in each row. NULL has no elements; two NULLs give NULL."""
    shift = len(left.parts[0])
    starts = np.stack([left.starts, right.starts + shift], axis=1).ravel()
    lengths = np.stack([left.lengths, right.lengths], axis=1).ravel()
    indices = pa.array(spans(starts, lengths))
    together = zip(left.parts, right.parts, strict=True)
    parts = tuple(pa.concat_arrays(list(pair)).take(indices) for pair in together)
    total = left.lengths + right.lengths
    return Flat(np.cumsum(total) - total, total, left.valid | right.valid, parts)


def row_keys(rows: Ints, coded: Ints, span: int) -> Ints:
    """Return a number for each pair of row and code; `span` exceeds every code."""
    return rows * (span + 1) + coded + 1


def first_of_each(keys: Ints) -> Ints:
    """Return the indices of first occurrences, in order."""
    return np.sort(np.unique(keys, return_index=True)[1])


def in_rows(left: Flat, right: Flat) -> tuple[Ints, Ints]:
    """Return the elements of two columns as numbers that are equal if the elements and their rows are."""
    left_codes, right_codes = codes([left.parts[0], right.parts[0]])
    span = 1 + max((int(found.max()) for found in (left_codes, right_codes) if len(found)), default=0)
    return row_keys(left.rows, left_codes, span), row_keys(right.rows, right_codes, span)


def numbers(column: pa.Array, missing: Any = 0) -> Ints:
    """Return a column of integers, with a number in place of NULL."""
    found: Ints = column.fill_null(missing).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def is_valid(column: pa.Array) -> Mask:
    found: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return found

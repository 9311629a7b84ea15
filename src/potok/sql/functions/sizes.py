"""Predict the size of results that can be much larger than the arguments of a function.

Each function returns the bytes of every row, or None if all rows together are certainly small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.budget import LARGEST_VALUE, PER_ITEM, Ints, row_sizes, size_of
from potok.sql.functions.constants import constant
from potok.sql.functions.function import Context, large_value
from potok.sql.types import BYTES

_SMALL: Final = 1 << 20


def note_large(large: Any, context: Context) -> None:
    """Report the rows whose value would be too large."""
    reason = str(large_value())
    for row in np.flatnonzero(large).tolist():
        context.failures.setdefault(row, reason)


def one_behind_the_other(arguments: Sequence[pa.Array]) -> Ints | None:
    """CONCAT and similar functions."""
    if sum(map(size_of, arguments)) <= _SMALL:
        return None
    found: Ints = np.add.reduce([row_sizes(argument) for argument in arguments])
    return found


def with_separator(arguments: Sequence[pa.Array]) -> Ints | None:
    """CONCAT_WS."""
    separator, *texts = arguments
    if size_of(separator) * len(texts) + sum(map(size_of, texts)) <= _SMALL:
        return None
    found: Ints = np.add.reduce([row_sizes(text) for text in texts]) + row_sizes(separator) * len(texts)
    return found


def joined_items(arguments: Sequence[pa.Array]) -> Ints | None:
    """ARRAY_JOIN."""
    lists, separator = arguments[0], arguments[1] if len(arguments) > 1 else None
    if separator is None or size_of(lists) + size_of(separator) <= _SMALL // 1024:
        return None
    items = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    found: Ints = row_sizes(lists) + items * row_sizes(separator)
    return found


def padded(most: int) -> Any:
    """LPAD and RPAD, which reject a length beyond `most` themselves."""

    def sizes(arguments: Sequence[pa.Array]) -> Ints | None:
        if 4 * (pc.max(arguments[1]).as_py() or 0) * len(arguments[1]) <= _SMALL:
            return None
        lengths = arguments[1].fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        wide = arguments[2].type != BYTES and not pc.all(pc.string_is_ascii(arguments[2])).as_py()
        found: Ints = np.where(lengths > most, 0, np.maximum(lengths, 0)) * (4 if wide else 1)
        return found

    return sizes


def replaced(arguments: Sequence[pa.Array]) -> Ints | None:
    """REPLACE."""
    texts, old, new = arguments
    places = size_of(texts) + len(texts)
    if places * (1 + size_of(new)) <= LARGEST_VALUE:
        return None
    if places * (1 + (pc.max(pc.binary_length(new)).as_py() or 0)) <= LARGEST_VALUE:
        return None
    return row_sizes(texts) + _occurrences(texts, old) * row_sizes(new)


def pieces(arguments: Sequence[pa.Array]) -> Ints | None:
    """SPLIT."""
    texts, delimiter = arguments[:2]
    if size_of(texts) <= _SMALL // PER_ITEM:
        return None
    return row_sizes(texts) + PER_ITEM * (1 + _occurrences(texts, delimiter))


def words(arguments: Sequence[pa.Array]) -> Ints | None:
    """INITCAP, which splits the string: a word of one letter needs more than its bytes."""
    return None if size_of(arguments[0]) <= _SMALL else 4 * row_sizes(arguments[0])


def _occurrences(texts: pa.Array, part: pa.Array) -> Ints:
    """Return an upper bound for the occurrences of `part` in each string."""
    wanted, lengths = constant(part), row_sizes(texts)
    if wanted:
        found: Ints = pc.count_substring(texts, pattern=wanted).fill_null(0).to_numpy(zero_copy_only=False)
        return found.astype(np.int64)
    # An empty part occurs before each character and at the end.
    one: Ints = np.maximum(row_sizes(part) - 4, 1)
    return lengths // one + 1

"""Tables whose windows follow the records: rows that may change are stored apart from closed ones."""

from __future__ import annotations

import pyarrow as pa

from potok.operators.core.chunk import Column, Ints
from potok.operators.exchange.shards import key_column


def open_table(table: str) -> str:
    """Return the table of windows that may still change, all those of a key in one cell."""
    return f"{table}/open"


def timers_of(table: str) -> str:
    """Return the index that says when a window of a key closes next, or earlier."""
    return f"{table}/closing"


def spanned_keys(keys: pa.Array, starts: Ints, ends: Ints, key_type: pa.DataType | None) -> Column:
    """Return the keys of a table with windows of variable length, as its downstream sees them."""
    column = key_column(keys, key_type)
    if isinstance(column, list):
        spans = zip(column, starts.tolist(), ends.tolist(), strict=True)
        return [{"key": key, "start": start, "end": end} for key, start, end in spans]
    return pa.StructArray.from_arrays([column, pa.array(starts), pa.array(ends)], ["key", "start", "end"])

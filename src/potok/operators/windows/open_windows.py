"""Tables whose windows follow the records: what may still change lies apart from the rows that are closed."""

from __future__ import annotations

import pyarrow as pa

from potok.operators.core.chunk import Column, Ints
from potok.operators.exchange.shards import key_column


def open_table(table: str) -> str:
    """Where the windows of a table are kept as long as they may change, all those of a key in one cell."""
    return f"{table}/open"


def timers_of(table: str) -> str:
    """The index that says when a window of a key closes next, or earlier."""
    return f"{table}/closing"


def spanned_keys(keys: pa.Array, starts: Ints, ends: Ints, key_type: pa.DataType | None) -> Column:
    """The keys of a table whose windows have ends of their own, as its downstream sees them."""
    column = key_column(keys, key_type)
    if isinstance(column, list):
        spans = zip(column, starts.tolist(), ends.tolist(), strict=True)
        return [{"key": key, "start": start, "end": end} for key, start, end in spans]
    return pa.StructArray.from_arrays([column, pa.array(starts), pa.array(ends)], ["key", "start", "end"])

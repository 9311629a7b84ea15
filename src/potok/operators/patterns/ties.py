"""Order the records of a key that have the same time by fields."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.operators.core.chunk import Chunk, Ints, order_of
from potok.topology.patterns.output import TieOrder


def in_tie_order(chunk: Chunk, key_numbers: Ints, ties: tuple[TieOrder, ...]) -> Chunk:
    """Return records whose order among those of the same key and time is that of some fields, then that of their
    positions. The order keys stay where they are."""
    if not ties or len(chunk) < 2:
        return chunk
    ranks = [_ranks(chunk.value, tie) for tie in reversed(ties)]
    positions = np.arange(len(chunk))
    order = np.lexsort((positions, chunk.timestamp, key_numbers))
    wanted = np.lexsort((positions, *ranks, chunk.timestamp, key_numbers))
    rows = np.empty(len(chunk), np.intp)
    rows[order] = wanted
    orders = order_of(chunk)
    found = chunk.take(rows)
    found.order = orders
    return found


def _ranks(values: pa.Array, tie: TieOrder) -> Ints:
    """Return the rank of each value; equal values have the same one."""
    column = values.field(tie.field) if not values.null_count else pc.struct_field(values, tie.field)
    return ranks_of(column, descending=tie.descending, nulls_first=tie.nulls_first)


def ranks_of(column: pa.Array, *, descending: bool, nulls_first: bool) -> Ints:
    """Return the rank of each value from 1; nulls come behind all others, or have rank 0."""
    ranks = pc.rank(column, sort_keys="descending" if descending else "ascending", tiebreaker="dense")
    found = np.asarray(ranks.to_numpy(zero_copy_only=False), np.int64)
    if nulls_first and column.null_count:
        found[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return found

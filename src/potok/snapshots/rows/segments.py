"""Join the cells of rows that are kept in several: the open matches of a pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from potok.operators.patterns.partials import joined
from potok.snapshots.rows.layout import TableLayout
from potok.snapshots.rows.windows import Cell
from potok.snapshots.snapshot import Snapshot


def whole_cells(layout: TableLayout, snapshot: Snapshot, cells: Iterable[Cell]) -> Iterator[Cell]:
    """Yield the cells of rows as the codec of a table decodes them."""
    table = layout.segments
    if table is None:
        yield from cells
        return
    for key, head in cells:
        shard = layout.shard_of(key, snapshot.shards)
        yield key, joined(key, head, partial(snapshot.get, table, shard))

"""Keep partitions small: split buckets that have grown, and drop those at the front of a table that became empty.

A split copies the upper cells of a bucket into new partitions, and then lists these in one lightweight transaction.
The copied cells stay where they were until a later batch, because a reader may have read the list before: when that
batch runs, the batch of the split is committed, so the reader sees another ledger than before and starts over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from potok.backends.cassandra.connection import Call
from potok.state.cassandra.cells import ALL, Cells
from potok.state.cassandra.fence import Change, ShardFence
from potok.state.cassandra.layout import BEYOND, IDS, STEP, Bucket, Layout, TableLayout
from potok.state.fence import Attempt

MOST_CELLS, MOST_BYTES = 80_000, 64 << 20
"""A larger bucket is split."""

MOST_PARTS = 32
"""The most buckets that one split makes."""


class Partitions:
    """The partitions of one shard. All methods are called inside `run`."""

    def __init__(self, cells: Cells, fence: ShardFence) -> None:
        self._cells, self._fence = cells, fence

    def upkeep(self, attempt: Attempt, layout: Layout, timestamp: int) -> list[Call]:
        """Return the removal of what splits have left behind, and note it in the layout."""
        calls: list[Call] = []
        for name, table in layout.tables.items():
            used = {bucket.number for bucket in table.buckets}
            for index, bucket in enumerate(table.buckets):
                if bucket.spare is not None:
                    numbers = range(bucket.spare, bucket.spare + MOST_PARTS)
                    calls += [self._cells.drop(name, number, timestamp) for number in numbers if number not in used]
                    bucket.spare = None
                split = bucket.split_batch
                if split is not None and split != bucket.trimmed_batch and attempt.batch > split:
                    calls.append(self._cells.cut(name, bucket, table.stop_of(index), BEYOND, timestamp))
                    bucket.trimmed_batch = split
        return calls

    def reshape(self, attempt: Attempt, layout: Layout, timestamp: int) -> list[tuple[str, bytes]] | None:
        """Split and drop buckets where it is due. Returns the starts of buckets that are no more; None if another
        process has claimed the shard meanwhile."""
        changes: list[Change] = []
        for name, table in layout.tables.items():
            change = _without_empty(name, table) or self._split(name, table, attempt, timestamp)
            if change is not None:
                changes.append(change)
        if not changes:
            return []
        if not self._fence.change(layout, attempt, changes):
            return None
        assert layout.generation is not None
        self._cells.execute(self._drops(_dropped(changes), layout.generation))
        return [(change.table, bucket.start) for change in changes for bucket in change.before.buckets]

    def _split(self, name: str, table: TableLayout, attempt: Attempt, timestamp: int) -> Change | None:
        index = next((index for index, bucket in enumerate(table.buckets) if _is_large(bucket)), None)
        if index is None:
            return None
        bucket, stop = table.buckets[index], table.stop_of(index)
        keys = self._cells.keys(name, bucket, stop)
        parts = min(MOST_PARTS, len(keys), max(2, 2 * len(keys) // MOST_CELLS, 2 * bucket.size // MOST_BYTES))
        if parts < 2:
            bucket.cells, bucket.size = len(keys), bucket.size if keys else 0
            return None
        starts = [keys[len(keys) * part // parts] for part in range(1, parts)]
        number = (timestamp + STEP) * IDS
        self._fence.note_spare(name, bucket.start, number, timestamp)
        average = bucket.size // max(1, len(keys))
        made = [Bucket(start, number + place) for place, start in enumerate(starts)]
        source = TableLayout([replace(bucket, start=b"")])
        for place, new in enumerate(made):
            last = starts[place + 1] if place + 1 < len(starts) else stop
            rows = self._cells.rows(name, source, new.start, last, ALL)
            self._cells.execute(self._cells.put(name, new, rows, timestamp))
        bounds = [len(keys) * part // parts for part in range(parts + 1)]
        sizes = [last - first for first, last in pairwise(bounds)]
        kept = replace(bucket, split_batch=attempt.batch, trimmed_batch=None, spare=None)
        for each, cells in zip([kept, *made], sizes, strict=True):
            each.cells, each.size = cells, cells * average
        return Change(name, table, [*table.buckets[:index], kept, *made, *table.buckets[index + 1 :]])

    def drop(self, layout: Layout, names: Sequence[str]) -> None:
        """Drop all buckets of tables: first their cells, then the list of buckets."""
        assert layout.generation is not None
        changes = [Change(name, layout.tables[name], []) for name in names]
        self._cells.execute(self._drops(_dropped(changes), layout.generation))
        if self._fence.change(layout, layout.attempt, changes):
            rows = [(change.table, bucket.start) for change in changes for bucket in change.before.buckets]
            self._fence.settle(layout, rows)

    def _drops(self, numbers: Sequence[tuple[str, int]], timestamp: int) -> Iterator[Call]:
        return (self._cells.drop(name, number, timestamp) for name, number in numbers)


def _dropped(changes: Sequence[Change]) -> list[tuple[str, int]]:
    """Return the partitions that no bucket has after the changes."""
    return [
        (change.table, bucket.number)
        for change in changes
        for bucket in change.before.buckets
        if bucket.number not in {kept.number for kept in change.after}
    ]


def _is_large(bucket: Bucket) -> bool:
    return bucket.cells > MOST_CELLS or (bucket.size > MOST_BYTES and bucket.cells > 1)


def _without_empty(name: str, table: TableLayout) -> Change | None:
    """Return the buckets without those below the floor."""
    first = table.index_of(table.floor)
    if first == 0:
        return None
    return Change(name, table, [replace(table.buckets[first], start=b""), *table.buckets[first + 1 :]])

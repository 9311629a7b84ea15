"""What one `put_many` changes: cells by bucket, and the counts and floors of tables that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from potok.state.cassandra.cells import Cells, grouped
from potok.state.cassandra.layout import TableLayout
from potok.state.store import Removals, Writes

MOST_KNOWN = 500_000
"""How many keys of one table a store remembers to have read."""


@dataclass(slots=True)
class Known:
    """What a store has read of a table: whether keys have a cell and how large it is, and the keys at its front.

    `head` is the page that was read last from the floor on, up to `stop`.
    """

    sizes: dict[bytes, int | None] = field(default_factory=dict)
    head: list[bytes] | None = None
    stop: bytes = b""

    def remember(self, keys: Sequence[bytes], found: Mapping[bytes, bytes]) -> None:
        if len(self.sizes) + len(keys) > MOST_KNOWN:
            self.sizes.clear()
        self.sizes.update((key, len(found[key]) if key in found else None) for key in keys)

    @property
    def least(self) -> bytes | None:
        """Return the least key that has a cell; None if that is not known."""
        if self.head is None:
            return None
        return self.head[0] if self.head else self.stop


@dataclass(slots=True)
class TableChange:
    """The cells of one table that are written and removed."""

    table: str
    cells: dict[bytes, bytes] = field(default_factory=dict)
    removed: set[bytes] = field(default_factory=set)

    def cut_at(self, known: Known) -> bytes | None:
        """Return the key below which everything is removed, if that is what `removed` means: one tombstone for all."""
        count = len(self.removed)
        if known.head is None or not 1 < count <= len(known.head) or set(known.head[:count]) != self.removed:
            return None
        return known.head[count - 1] + b"\x00"

    def floor(self, known: Known, before: bytes) -> bytes:
        """Return the floor after the change."""
        floor = before if known.least is None else max(before, known.least)
        if known.head is not None and self.cut_at(known) is not None:
            left = known.head[len(self.removed) :]
            floor = left[0] if left else known.head[-1] + b"\x00"
        return min(floor, *self.cells) if self.cells else floor

    def count(self, cells: Cells, layout: TableLayout, known: Known) -> None:
        """Add what the change adds to the counts of its buckets; keys that were not read before are looked up."""
        touched = self.cells.keys() | self.removed
        head = set(known.head or ())
        unknown = [key for key in touched if key not in known.sizes and key not in head]
        there = cells.existing(self.table, layout, unknown) if unknown else set()

        def size_before(key: bytes, average: int) -> int | None:
            if key in known.sizes:
                size = known.sizes[key]
                return None if size is None else size + len(key)
            return average if key in head or key in there else None

        for bucket, keys in grouped(layout, touched):
            more, size, average = 0, 0, bucket.average
            for key in keys:
                before, cell = size_before(key, average), self.cells.get(key)
                more += (cell is not None) - (before is not None)
                size += (len(cell) + len(key) if cell is not None else 0) - (before or 0)
            bucket.cells, bucket.size = max(0, bucket.cells + more), max(0, bucket.size + size)


def changes_of(writes: Writes, removals: Removals) -> dict[str, TableChange]:
    """Return the changes by table. Of two writes to one key the last counts."""
    found: dict[str, TableChange] = {}
    for table, rows in writes:
        found.setdefault(table, TableChange(table)).cells.update(rows)
    for table, keys in removals:
        if keys:
            found.setdefault(table, TableChange(table)).removed.update(keys)
    return found

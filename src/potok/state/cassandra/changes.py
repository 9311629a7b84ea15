"""What one `put_many` changes: cells by bucket, and the counts and floors of tables that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from potok.state.cassandra.cells import Cells, grouped
from potok.state.cassandra.layout import TableLayout
from potok.state.store import Removals, Writes

WORTH_COUNTING = 1_000
"""From how many removed cells on the cells between them are counted, to see whether there are others."""

MOST_BETWEEN = 4
"""They are not counted where their buckets have so many times as many cells."""

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
    """The cells of one table that are written and removed; no key is in both.

    `cut` is a range of keys that holds nothing but removed cells: one tombstone instead of many.
    """

    table: str
    cells: dict[bytes, bytes] = field(default_factory=dict)
    removed: set[bytes] = field(default_factory=set)
    cut: tuple[bytes, bytes] | None = None

    def plan(self, cells: Cells, layout: TableLayout, known: Known) -> None:
        """Find out what there is under the changed keys: adjust the counts of buckets and the floor, and find a range
        to cut."""
        touched = self.cells.keys() | self.removed
        head = set(known.head or ())
        unknown = [key for key in touched if key not in known.sizes and key not in head]
        there = cells.existing(self.table, layout, unknown) if unknown else set()
        there |= head

        def size_before(key: bytes, average: int) -> int | None:
            size = known.sizes.get(key)
            if size is not None:
                return size + len(key)
            return average if key in there else None

        present = {key for key in self.removed if size_before(key, 0) is not None}
        self.cut = self._range_to_cut(cells, layout, known, present)
        for bucket, keys in grouped(layout, touched):
            more, size, average = 0, 0, bucket.average
            for key in keys:
                before, cell = size_before(key, average), self.cells.get(key)
                more += (cell is not None) - (before is not None)
                size += (len(cell) + len(key) if cell is not None else 0) - (before or 0)
            bucket.cells, bucket.size = max(0, bucket.cells + more), max(0, bucket.size + size)

    def _range_to_cut(
        self, cells: Cells, layout: TableLayout, known: Known, present: set[bytes]
    ) -> tuple[bytes, bytes] | None:
        count = len(present)
        if known.head is not None and 1 < count <= len(known.head) and present.issuperset(known.head[:count]):
            span = b"", known.head[count - 1] + b"\x00"
        elif count >= WORTH_COUNTING:
            span = min(present), max(present) + b"\x00"
            between = sum(bucket.cells for bucket, *_ in layout.spans(*span))
            if between > MOST_BETWEEN * count or cells.count(self.table, layout, *span) != count:
                return None
        else:
            return None
        return None if any(span[0] <= key < span[1] for key in self.cells) else span

    def floor(self, known: Known, before: bytes) -> bytes:
        """Return the floor after the change."""
        floor = before if known.least is None else max(before, known.least)
        if self.cut is not None and self.cut[0] <= floor < self.cut[1]:
            left = (key for key in known.head or () if self.cut is not None and key >= self.cut[1])
            floor = next(left, self.cut[1])
        return min(floor, *self.cells) if self.cells else floor


def changes_of(writes: Writes, removals: Removals) -> dict[str, TableChange]:
    """Return the changes by table. Of two writes to one key the last counts.

    A key that is removed and written is only written: the removal by a second copy of a task, which is ended before
    it writes, would otherwise remove what the first copy wrote.
    """
    found: dict[str, TableChange] = {}
    for table, rows in writes:
        found.setdefault(table, TableChange(table)).cells.update(rows)
    for table, keys in removals:
        if keys:
            found.setdefault(table, TableChange(table)).removed.update(keys)
    for change in found.values():
        change.removed -= change.cells.keys()
    return found

"""Over which partitions the cells of a shard are spread, and which attempt may write them.

A table of a shard is divided into buckets: consecutive ranges of keys, each in a partition of its own, so that
partitions stay small and a range of keys is read in order. The rows of `potok_shards` list them; its static columns
are the fence.

`bucket` and `split_batch` of a row, and the fence, change in lightweight transactions alone, and each of them raises
the generation: whoever claims a generation after the one it has read knows all buckets. The other columns are written
with the timestamps of a generation, so that those of the latest one count.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from potok.backends.cassandra.connection import CassandraConnection
from potok.clock import now_ms
from potok.state.fence import Attempt

BEYOND = b"\xff" * 512
"""Greater than any stored key."""

STEP = 2
"""Each generation has two timestamps: cells are removed with the first and written with the second, so that a cell
that is removed and written exists."""

IDS = 256
"""How many partitions one generation can number."""

_LOAD = """
SELECT epoch, batch_number, generation, settled, tbl, start, bucket, split_batch, cells, size, floor, spare,
  trimmed_batch
FROM potok_shards WHERE query = ? AND shard = ?
"""


@dataclass(slots=True)
class Bucket:
    """The cells of a table from `start` up to the next bucket, in the partition `number`.

    `split_batch` is the batch that has moved cells out of it; they are removed by a later one (`trimmed_batch`). An
    unfinished split has copied cells into the partitions from `spare` on.
    """

    start: bytes
    number: int
    cells: int = 0
    size: int = 0
    split_batch: int | None = None
    trimmed_batch: int | None = None
    spare: int | None = None
    stored: tuple[object, ...] = ()
    """The counts as they are stored."""

    @property
    def average(self) -> int:
        """Return the approximate size of a cell and its key."""
        return self.size // self.cells if self.cells > 0 else 0


@dataclass(slots=True)
class TableLayout:
    """The buckets of a table, in order; the first starts at the empty key. No cell is below `floor`.

    A reader that starts at the floor does not pass the tombstones of what was removed from the front of a table.
    """

    buckets: list[Bucket]
    floor: bytes = b""

    def index_of(self, key: bytes) -> int:
        return bisect_right(self.buckets, key, key=lambda bucket: bucket.start) - 1

    def stop_of(self, index: int) -> bytes:
        """Return where the next bucket starts."""
        return self.buckets[index + 1].start if index + 1 < len(self.buckets) else BEYOND

    def spans(self, start: bytes, stop: bytes | None) -> Iterator[tuple[Bucket, bytes, bytes]]:
        """Yield the buckets of a range of keys, with the part of the range that is in each, in order."""
        start, stop = max(start, self.floor), BEYOND if stop is None else stop
        for index in range(self.index_of(start), len(self.buckets)):
            bucket = self.buckets[index]
            if bucket.start >= stop:
                return
            first, last = max(start, bucket.start), min(stop, self.stop_of(index))
            if first < last:
                yield bucket, first, last

    @property
    def cells(self) -> int:
        return sum(bucket.cells for bucket in self.buckets)

    def counts_of(self, bucket: Bucket) -> tuple[object, ...]:
        """Return what is stored with the timestamps of a generation."""
        floor = None if bucket.start else self.floor
        return bucket.cells, bucket.size, floor, bucket.spare, bucket.trimmed_batch


@dataclass(slots=True)
class Layout:
    """What a shard has in `potok_shards`. `settled` is the last generation whose counts were written."""

    attempt: Attempt | None = None
    generation: int | None = None
    settled: int | None = None
    tables: dict[str, TableLayout] = field(default_factory=dict)

    @property
    def next_generation(self) -> int:
        """Return the next generation. The first follows from the clock, so that a shard that is removed and created
        again goes on counting."""
        return now_ms() * 1_000 if self.generation is None else self.generation + STEP

    @property
    def is_settled(self) -> bool:
        return self.generation is None or self.settled == self.generation


def load_layout(connection: CassandraConnection, query: str, shard: int, *, serial: bool = False) -> Layout:
    """Read the layout of a shard inside `run`; `serial` finishes lightweight transactions that lost their client."""
    read = connection.execute_serially if serial else connection.execute
    layout = Layout()
    for row in read(_LOAD, (query, shard)):
        _add(layout, *row)
    return layout


def _add(
    layout: Layout,
    epoch: int | None,
    batch: int | None,
    generation: int | None,
    settled: int | None,
    table: str | None,
    start: bytes | None,
    number: int | None,
    split_batch: int | None,
    cells: int | None,
    size: int | None,
    floor: bytes | None,
    *others: Any,
) -> None:
    spare, trimmed_batch = others
    layout.generation, layout.settled = generation, settled
    layout.attempt = None if epoch is None or batch is None else Attempt(epoch, batch)
    # A row without a bucket has the counts of a table that was dropped.
    if table is None or start is None or number is None:
        return
    stored = cells, size, floor, spare, trimmed_batch
    bucket = Bucket(start, number, cells or 0, size or 0, split_batch, trimmed_batch, spare, stored)
    found = layout.tables.setdefault(table, TableLayout([]))
    found.buckets.append(bucket)
    if not start:
        found.floor = floor or b""


def listed_shards(connection: CassandraConnection, query: str) -> list[int]:
    """Return the shards that a query has, inside `run`: a look at one key of every shard of every query."""
    found = connection.execute("SELECT DISTINCT query, shard FROM potok_shards")
    return sorted(shard for name, shard in found if name == query)

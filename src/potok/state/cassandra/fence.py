"""Claim a generation of a shard: one lightweight transaction, which orders the writes of all attempts.

Cassandra keeps the write with the highest timestamp. The timestamps of a generation follow from its number, so a
write of an earlier one never replaces nor deletes what a later one wrote, whenever it arrives. It can arrive at keys
that the later one did not touch: such a cell belongs to an attempt that never committed, so it counts with its old
value, which is what the key had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from potok.backends.cassandra.connection import Call, CassandraConnection
from potok.backends.state_url import StoreNotReady
from potok.state.cassandra.layout import IDS, Bucket, Layout, TableLayout, load_layout
from potok.state.fence import Attempt, StaleAttempt

TRIES = 50
"""How often a claim is repeated because another process was faster."""

_CLAIM = """
UPDATE potok_shards SET epoch = ?, batch_number = ?, generation = ? WHERE query = ? AND shard = ? IF generation = ?
"""

_SET_BUCKET = (
    "UPDATE potok_shards SET bucket = ?, split_batch = ? WHERE query = ? AND shard = ? AND tbl = ? AND start = ?"
)

_FORGET = "DELETE epoch, batch_number, generation FROM potok_shards WHERE query = ? AND shard = ? IF generation = ?"

_COUNTS = """
UPDATE potok_shards USING TIMESTAMP ? SET cells = ?, size = ?, floor = ?, spare = ?, trimmed_batch = ?
WHERE query = ? AND shard = ? AND tbl = ? AND start = ?
"""

_SPARE = """
UPDATE potok_shards USING TIMESTAMP ? SET spare = ? WHERE query = ? AND shard = ? AND tbl = ? AND start = ?
"""

_REMOVE_COUNTS = "DELETE FROM potok_shards USING TIMESTAMP ? WHERE query = ? AND shard = ? AND tbl = ? AND start = ?"

_SETTLE = "UPDATE potok_shards USING TIMESTAMP ? SET settled = ? WHERE query = ? AND shard = ?"


@dataclass(slots=True)
class Change:
    """A change of the buckets of a table: those that there are afterwards."""

    table: str
    before: TableLayout
    after: list[Bucket]


@dataclass(frozen=True, slots=True)
class Claim:
    """A layout whose generation was claimed.

    `is_given` tells that nobody has changed the shard since the layout was read, `is_counted` that the write before
    has stored its counts.
    """

    layout: Layout
    is_given: bool
    is_counted: bool

    @property
    def generation(self) -> int:
        assert self.layout.generation is not None
        return self.layout.generation


class ShardFence:
    """The fence and the list of buckets of one shard. All methods are called inside `run`."""

    def __init__(self, connection: CassandraConnection, query: str, shard: int, location: str) -> None:
        self._connection, self.query, self.shard, self._location = connection, query, shard, location

    def load(self, *, serial: bool = False) -> Layout:
        return load_layout(self._connection, self.query, self.shard, serial=serial)

    def claim(self, layout: Layout, attempt: Attempt | None, tables: Sequence[str] = ()) -> Claim:
        """Claim the next generation for an attempt, with buckets for tables that have none.

        Without an attempt, the last one stays.
        """
        given = layout
        for _ in range(TRIES):
            if attempt is not None and layout.attempt is not None and attempt < layout.attempt:
                raise StaleAttempt(attempt, layout.attempt, self._location)
            number = layout.next_generation * IDS
            added = [name for name in tables if name not in layout.tables]
            changes = [Change(name, TableLayout([]), [Bucket(b"", number)]) for name in added]
            is_counted = layout.is_settled
            if self.change(layout, attempt or layout.attempt, changes):
                return Claim(layout, layout is given, is_counted)
            layout = self.load(serial=True)
        hint = "another process writes to this shard all the time: stop one of them"
        raise StoreNotReady(self._location, "the fence of the shard is contended", hint)

    def change(self, layout: Layout, attempt: Attempt | None, changes: Sequence[Change] = ()) -> bool:
        """Raise the generation and change buckets, in one transaction; False if another process did so before."""
        following = layout.next_generation
        epoch, batch = (None, None) if attempt is None else attempt
        fence = epoch, batch, following, self.query, self.shard, layout.generation
        calls: list[Call] = [(self._connection.prepared(_CLAIM), fence)]
        for change in changes:
            calls += self._rows(change)
        (applied, *_), *_ = self._connection.session.execute(self._connection.batch(calls))
        if applied:
            layout.attempt, layout.generation = attempt, following
            for change in changes:
                self._apply(layout, change)
        return bool(applied)

    def settle(self, layout: Layout, gone: Sequence[tuple[str, bytes]] = ()) -> None:
        """Store the counts in one write: all are in one partition. `gone` are rows of buckets that are no more."""
        assert layout.generation is not None
        counts, place = self._connection.prepared(_COUNTS), (self.query, self.shard)
        timestamp = layout.generation + 1
        calls: list[Call] = [(self._connection.prepared(_SETTLE), (timestamp, layout.generation, *place))]
        there = {(name, bucket.start) for name, table in layout.tables.items() for bucket in table.buckets}
        remove = self._connection.prepared(_REMOVE_COUNTS)
        calls += [(remove, (timestamp, *place, *row)) for row in gone if row not in there]
        for name, table in layout.tables.items():
            for bucket in table.buckets:
                values = table.counts_of(bucket)
                if values != bucket.stored:
                    calls.append((counts, (timestamp, *values, *place, name, bucket.start)))
                    bucket.stored = values
        self._connection.session.execute(self._connection.batch(calls))
        layout.settled = layout.generation

    def note_spare(self, table: str, start: bytes, number: int, timestamp: int) -> None:
        """Record which partitions a split is about to fill."""
        self._connection.execute(_SPARE, (timestamp, number, self.query, self.shard, table, start))

    def forget(self, layout: Layout) -> None:
        """Remove the fence, unless somebody has claimed a generation since."""
        assert layout.generation is not None
        place = self.query, self.shard
        self._connection.execute(_FORGET, (*place, layout.generation))
        self._connection.execute(_SETTLE, (layout.generation + 1, None, *place))

    def _rows(self, change: Change) -> list[Call]:
        """Return the statements for the buckets that change."""
        wanted: dict[bytes, tuple[int | None, int | None]] = {
            bucket.start: (None, None) for bucket in change.before.buckets
        }
        wanted |= {bucket.start: (bucket.number, bucket.split_batch) for bucket in change.after}
        known = {bucket.start: (bucket.number, bucket.split_batch) for bucket in change.before.buckets}
        statement = self._connection.prepared(_SET_BUCKET)
        place = self.query, self.shard, change.table
        return [(statement, (*values, *place, start)) for start, values in wanted.items() if known.get(start) != values]

    @staticmethod
    def _apply(layout: Layout, change: Change) -> None:
        if change.after:
            layout.tables[change.table] = TableLayout(change.after, change.before.floor)
        else:
            layout.tables.pop(change.table, None)

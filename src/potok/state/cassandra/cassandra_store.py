"""The cells of one shard of a query in Cassandra.

A write claims a generation of the shard in one lightweight transaction (`fence.py`), then writes and removes cells
with the timestamps of that generation, many at a time and in any order, then stores the counts. It is not atomic, and
need not be: a cell contains its attempt and the value before it, and an attempt counts only once the ledger says so,
after all of its writes. A write that was interrupted is repeated in a later generation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from potok.backends.cassandra.connection import Call, connect
from potok.backends.cassandra.tables import make_tables
from potok.backends.state_url import Where
from potok.state.cassandra.cells import Cells, grouped
from potok.state.cassandra.changes import Known, TableChange, changes_of
from potok.state.cassandra.fence import ShardFence
from potok.state.cassandra.layout import BEYOND, Layout, TableLayout, listed_shards
from potok.state.cassandra.partitions import Partitions
from potok.state.fence import Attempt
from potok.state.store import Range, Removals, Row, StateMissing, Store, Writes

TOMBSTONES = "/deleted"


class CassandraStore(Store):
    def __init__(self, where: Where, query: str, shard: int, *, create: bool = True) -> None:
        self.location = f"{where} (query {query}, shard {shard})"
        self._connection = connect(where)
        self._query, self._shard = query, shard
        self._cells = Cells(self._connection, query, shard)
        self._fence = ShardFence(self._connection, query, shard, self.location)
        self._partitions = Partitions(self._cells, self._fence)
        self._layout: Layout | None = None
        self._own = False
        """Whether the layout is that of this store's last write."""
        self._known: dict[str, Known] = {}
        self._connection.run(lambda: make_tables(self._connection))
        if not create and self.attempt() is None:
            raise StateMissing(self.location)

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        if not keys:
            return []

        def work() -> dict[bytes, bytes]:
            layout = self._table(table)
            return self._cells.get(table, layout, set(keys)) if layout else {}

        found = self._connection.run(work)
        self._known_of(table).remember(keys, found)
        return list(map(found.get, keys))

    def page(self, table: str, start: bytes = b"", stop: bytes | None = None, *, limit: int) -> list[Row]:
        def work() -> list[Row]:
            layout = self._table(table)
            if layout is None:
                return []
            rows = list(self._cells.rows(table, layout, start, stop, limit))
            known = self._known_of(table)
            if start <= layout.floor and (known.head is None or len(known.head) < len(rows)):
                known.head, known.stop = [key for key, _ in rows], BEYOND if stop is None else stop
            return rows

        return self._connection.run(work)

    def ranges(self, table: str, ranges: Sequence[Range]) -> list[list[Row]]:
        def work() -> list[list[Row]]:
            layout = self._table(table)
            return self._cells.ranges(table, layout, ranges) if layout else [[] for _ in ranges]

        return self._connection.run(work)

    def put_many(self, attempt: Attempt, writes: Writes, removals: Removals = ()) -> None:
        changes = changes_of(writes, removals)
        again = False

        def work() -> None:
            nonlocal again
            # A claim whose response was lost may have succeeded.
            layout = self._fence.load(serial=True) if again or self._layout is None else self._layout
            again = True
            self._put(attempt, layout, changes)

        self._connection.run(work)

    def _put(self, attempt: Attempt, layout: Layout, changes: dict[str, TableChange]) -> None:
        claim = self._fence.claim(layout, attempt, [name for name, change in changes.items() if change.cells])
        layout, generation = claim.layout, claim.generation
        self._layout, self._own = layout, False
        if not claim.is_given:
            # What was read before may have changed since.
            self._known = {}
        tables = {name: layout.tables[name] for name in changes if name in layout.tables}
        before = self._partitions.upkeep(attempt, layout, generation)
        for name, table in tables.items():
            changes[name].plan(self._cells, table, self._known_of(name))
        removed = [change for name, change in changes.items() if change.removed and name in tables]
        # The tombstones of removed cells go last, so that an interrupted sweep is repeated.
        first = [change for change in removed if not change.table.endswith(TOMBSTONES)]
        last = [change for change in removed if change.table.endswith(TOMBSTONES)]
        self._cells.execute(
            chain(before, *(self._removals(change, tables[change.table], generation) for change in first))
        )
        self._cells.execute(
            chain(
                *(self._removals(change, tables[change.table], generation) for change in last),
                *(self._writes(changes[name], table, generation + 1) for name, table in tables.items()),
            )
        )
        for name, known in self._known.items():
            if name in layout.tables:
                table = layout.tables[name]
                table.floor = changes.get(name, TableChange(name)).floor(known, table.floor)
        if not claim.is_counted:
            self._recount(layout)
        gone = self._partitions.reshape(attempt, layout, generation + 1)
        if gone is not None:
            self._fence.settle(layout, gone)
            self._own = True
        self._known = {}

    def _removals(self, change: TableChange, layout: TableLayout, timestamp: int) -> Iterator[Call]:
        if change.cut is None:
            yield from self._cells.remove(change.table, layout, change.removed, timestamp)
        else:
            for bucket, first, last in layout.spans(*change.cut):
                yield self._cells.cut(change.table, bucket, first, last, timestamp)

    def _writes(self, change: TableChange, layout: TableLayout, timestamp: int) -> Iterator[Call]:
        for bucket, keys in grouped(layout, change.cells):
            yield from self._cells.put(change.table, bucket, ((key, change.cells[key]) for key in keys), timestamp)

    def _recount(self, layout: Layout) -> None:
        """Count the cells of all buckets: the last write was interrupted before it stored the counts."""
        for name, table in layout.tables.items():
            for index, bucket in enumerate(table.buckets):
                average, found = bucket.average, self._cells.count(name, table, bucket.start, table.stop_of(index))
                if found >= 0:
                    bucket.cells, bucket.size = found, found * average if average else bucket.size

    def entries(self, table: str) -> int:
        found = self._current().tables.get(table)
        return found.cells if found else 0

    def tables(self) -> list[str]:
        return sorted(self._current().tables)

    def attempt(self) -> Attempt | None:
        self._own = False
        return self._current().attempt

    def size_bytes(self) -> int:
        return sum(bucket.size for table in self._current().tables.values() for bucket in table.buckets)

    def drop_tables(self, tables: Sequence[str]) -> None:
        self._connection.run(lambda: self._drop(tables))

    def _drop(self, tables: Sequence[str] | None) -> Layout:
        """Drop tables, or all of them."""
        layout = self._fence.claim(self._fence.load(serial=True), None).layout
        names = list(layout.tables) if tables is None else [name for name in tables if name in layout.tables]
        self._partitions.drop(layout, names)
        self._layout, self._known, self._own = None, {}, False
        return layout

    def clear(self) -> None:
        def work() -> None:
            layout = self._fence.load(serial=True)
            if layout.generation is not None:
                self._fence.forget(self._drop(None))

        self._connection.run(work)
        self._layout = None

    def close(self) -> None:
        """Do nothing: the connections belong to the process, which closes them at exit."""

    def _current(self) -> Layout:
        """Return the layout as it is; that of this store's own last write is taken as it is."""
        if self._layout is None or not self._own:
            self._layout = self._connection.run(self._fence.load)
            self._known = {}
        return self._layout

    def _table(self, table: str) -> TableLayout | None:
        """Return the layout of a table, inside `run`. A shard has one writer, so it changes by this store's writes;
        a table that was unknown is looked up again."""
        if self._layout is None or table not in self._layout.tables:
            loaded = self._fence.load()
            if self._layout is None or self._layout.generation != loaded.generation:
                self._known = {}
            self._layout, self._own = loaded, False
        return self._layout.tables.get(table)

    def _known_of(self, table: str) -> Known:
        return self._known.setdefault(table, Known())


def remove_shards(where: Where, query: str) -> None:
    """Remove all state of a query, of all shards."""
    connection = connect(where)
    connection.run(lambda: make_tables(connection))
    for shard in connection.run(lambda: listed_shards(connection, query)):
        CassandraStore(where, query, shard).clear()

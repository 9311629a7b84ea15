"""Read and write the cells of partitions, many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cassandra import ReadFailure, ReadTimeout

from potok.backends.cassandra.connection import Call, CassandraConnection
from potok.state.cassandra.layout import Bucket, TableLayout
from potok.state.store import Range, Row

KEYS = 500
"""The most keys of one request."""

PAGE = 5_000
"""The most cells of one response."""

WRITES = 200
"""The most cells of one write."""

READ_BYTES, WRITE_BYTES = 1 << 20, 1 << 18
"""The approximate size of responses and writes, which both sides hold in memory; a larger cell is alone."""

ALL = 1 << 62

_PLACE = "query = ? AND shard = ? AND tbl = ? AND bucket = ?"
_GET = f"SELECT key, cell FROM potok_cells WHERE {_PLACE} AND key IN ?"
_HAVE = f"SELECT key FROM potok_cells WHERE {_PLACE} AND key IN ?"
_ROWS = f"SELECT key, cell FROM potok_cells WHERE {_PLACE} AND key >= ? AND key < ? LIMIT ?"
_KEYS = f"SELECT key FROM potok_cells WHERE {_PLACE} AND key >= ? AND key < ? LIMIT ?"
_COUNT = f"SELECT count(key) FROM potok_cells WHERE {_PLACE} AND key >= ? AND key < ?"
# An UPDATE, unlike an INSERT, stores nothing for the row itself.
_PUT = f"UPDATE potok_cells USING TIMESTAMP ? SET cell = ? WHERE {_PLACE} AND key = ?"
_REMOVE = f"DELETE FROM potok_cells USING TIMESTAMP ? WHERE {_PLACE} AND key IN ?"
_CUT = f"DELETE FROM potok_cells USING TIMESTAMP ? WHERE {_PLACE} AND key >= ? AND key < ?"
_DROP = f"DELETE FROM potok_cells USING TIMESTAMP ? WHERE {_PLACE}"


class Cells:
    """The partitions of one shard. All methods are called inside `run`."""

    def __init__(self, connection: CassandraConnection, query: str, shard: int) -> None:
        self._connection, self._query, self._shard = connection, query, shard

    def get(self, table: str, layout: TableLayout, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the cells of those keys that have one."""
        found: dict[bytes, bytes] = {}
        for rows in self._connection.execute_all(self._lookups(_GET, table, layout, keys)):
            found.update(rows)
        return found

    def existing(self, table: str, layout: TableLayout, keys: Iterable[bytes]) -> set[bytes]:
        """Return those keys that have a cell."""
        calls = self._lookups(_HAVE, table, layout, keys)
        return {key for rows in self._connection.execute_all(calls) for (key,) in rows}

    def _lookups(self, statement: str, table: str, layout: TableLayout, keys: Iterable[bytes]) -> Iterator[Call]:
        prepared = self._connection.prepared(statement)
        for bucket, part in grouped(layout, keys):
            most = _at_most(KEYS, bucket)
            for first in range(0, len(part), most):
                yield prepared, (*self._place(table, bucket), part[first : first + most])

    def rows(self, table: str, layout: TableLayout, start: bytes, stop: bytes | None, limit: int) -> Iterator[Row]:
        """Yield up to `limit` cells of a range, in order."""
        for bucket, first, last in layout.spans(start, stop):
            for rows in self._pages(_ROWS, table, bucket, (first, last), limit):
                yield from rows
                limit -= len(rows)
            if limit <= 0:
                return

    def keys(self, table: str, bucket: Bucket, stop: bytes) -> list[bytes]:
        """Return all keys of a bucket."""
        span = bucket.start, stop
        return [key for rows in self._pages(_KEYS, table, bucket, span, ALL) for (key,) in rows]

    def _pages(
        self, statement: str, table: str, bucket: Bucket, span: tuple[bytes, bytes], limit: int
    ) -> Iterator[list[Any]]:
        """Yield the cells of a range of one bucket. A server reads only so many tombstones for one page, so smaller
        pages succeed where tombstones lie between the cells."""
        (start, stop), most = span, _at_most(PAGE, bucket)
        while limit > 0 and start < stop:
            wanted = min(most, limit)
            values = (*self._place(table, bucket), start, stop, wanted)
            try:
                rows = list(self._connection.execute(statement, values, fetch=wanted))
            except ReadFailure:
                if wanted == 1:
                    raise
                most = max(1, wanted // 8)
                continue
            yield rows
            if len(rows) < wanted:
                return
            start, limit = rows[-1][0] + b"\x00", limit - len(rows)

    def ranges(self, table: str, layout: TableLayout, ranges: Sequence[Range]) -> list[list[Row]]:
        """Return all cells of each range, in order."""
        spans = [(number, *span) for number, each in enumerate(ranges) for span in layout.spans(*each)]
        prepared, most = self._connection.prepared(_ROWS), [_at_most(PAGE, bucket) for _, bucket, *_ in spans]
        pairs = zip(spans, most, strict=True)
        calls = ((prepared, (*self._place(table, bucket), *span, limit)) for (_, bucket, *span), limit in pairs)
        try:
            parts: list[list[Row]] = [list(rows) for rows in self._connection.execute_all(calls)]
        except ReadFailure:
            parts, most = [[] for _ in spans], [0 for _ in spans]
        found: list[list[Row]] = [[] for _ in ranges]
        for (number, bucket, first, last), part, limit in zip(spans, parts, most, strict=True):
            found[number] += part
            if len(part) == limit:
                rest = part[-1][0] + b"\x00" if part else first, last
                for rows in self._pages(_ROWS, table, bucket, rest, ALL):
                    found[number] += rows
        return found

    def count(self, table: str, layout: TableLayout, start: bytes, stop: bytes) -> int:
        """Count the cells of a range; -1 if there are too many tombstones to do so."""
        prepared = self._connection.prepared(_COUNT)
        spans = layout.spans(start, stop)
        calls: list[Call] = [(prepared, (*self._place(table, bucket), *span)) for bucket, *span in spans]
        try:
            return sum(int(rows.one()[0]) for rows in self._connection.execute_all(calls))
        except (ReadFailure, ReadTimeout):
            return -1

    def put(self, table: str, bucket: Bucket, rows: Iterable[Row], timestamp: int) -> Iterator[Call]:
        """Yield the writes of cells of one bucket."""
        prepared, place = self._connection.prepared(_PUT), self._place(table, bucket)
        batch, size = self._connection.batch(()), 0
        for key, cell in rows:
            if len(batch) and (len(batch) == WRITES or size + len(cell) > WRITE_BYTES):
                yield batch, ()
                batch, size = self._connection.batch(()), 0
            batch.add(prepared, (timestamp, cell, *place, key))
            size += len(key) + len(cell)
        if len(batch):
            yield batch, ()

    def remove(self, table: str, layout: TableLayout, keys: Iterable[bytes], timestamp: int) -> Iterator[Call]:
        prepared = self._connection.prepared(_REMOVE)
        for bucket, part in grouped(layout, keys):
            for first in range(0, len(part), KEYS):
                yield prepared, (timestamp, *self._place(table, bucket), part[first : first + KEYS])

    def cut(self, table: str, bucket: Bucket, start: bytes, stop: bytes, timestamp: int) -> Call:
        """Return the removal of a range of one partition: one tombstone, however many cells there are."""
        return self._connection.prepared(_CUT), (timestamp, *self._place(table, bucket), start, stop)

    def drop(self, table: str, number: int, timestamp: int) -> Call:
        """Return the removal of a partition."""
        return self._connection.prepared(_DROP), (timestamp, *self._place(table, Bucket(b"", number)))

    def execute(self, calls: Iterable[Call]) -> None:
        self._connection.execute_all(calls)

    def _place(self, table: str, bucket: Bucket) -> tuple[str, int, str, int]:
        return self._query, self._shard, table, bucket.number


def grouped(layout: TableLayout, keys: Iterable[bytes]) -> Iterator[tuple[Bucket, list[bytes]]]:
    """Yield the keys of each bucket, in order."""
    rest = iter(sorted(keys))
    if len(layout.buckets) == 1:
        part = list(rest)
        if part:
            yield layout.buckets[0], part
        return
    key = next(rest, None)
    while key is not None:
        index = layout.index_of(key)
        stop, part = layout.stop_of(index), []
        while key is not None and key < stop:
            part.append(key)
            key = next(rest, None)
        yield layout.buckets[index], part


def _at_most(most: int, bucket: Bucket) -> int:
    """Return how many cells of a bucket fit into one response."""
    return max(1, min(most, READ_BYTES // max(1, bucket.average)))

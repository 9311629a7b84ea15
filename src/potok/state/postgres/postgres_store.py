"""The cells of one shard of a query in PostgreSQL.

A write is one transaction. It first updates the fence row of the shard and holds its lock until the end, so that
attempts on one shard are serialized and a lower one is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg.sql import SQL, Composed

from potok.backends.postgres.arrays import Blobs
from potok.backends.postgres.connections import Connection, connections_to
from potok.backends.state_url import Where
from potok.state.fence import Attempt, StaleAttempt
from potok.state.postgres.schema import cells_of, cells_text, make_state_tables
from potok.state.store import Range, Removals, Row, StateMissing, Store, Writes

BEYOND = b"\xff" * 512
"""Greater than any stored key."""

CHUNK = 100_000
"""Cells per statement."""

_RAISE = """
INSERT INTO potok.fences AS f VALUES (%s, %s, %s, %s)
ON CONFLICT (query, shard) DO UPDATE SET epoch = EXCLUDED.epoch, batch = EXCLUDED.batch
WHERE (f.epoch, f.batch) <= (EXCLUDED.epoch, EXCLUDED.batch)
RETURNING 1
"""

# A row that did not exist has no earlier version, so its xmax is 0.
_PUT = """
WITH came AS (
    INSERT INTO {cells} AS c SELECT %s, %s, key, cell FROM unnest(%b::bytea[], %b::bytea[]) AS item (key, cell)
    ON CONFLICT (shard, tbl, key) DO UPDATE SET cell = EXCLUDED.cell RETURNING c.xmax = 0 AS fresh
) SELECT count(*) FROM came WHERE fresh
"""

# LIMIT makes PostgreSQL look up the keys one by one; it might read the whole table otherwise.
_REMOVE = """
WITH gone AS (
    DELETE FROM {cells} WHERE ctid = ANY(ARRAY(
        SELECT found.ctid FROM (SELECT %s::int AS shard, %s::text AS tbl) AS place, unnest(%b::bytea[]) AS item (key),
        LATERAL (SELECT c.ctid FROM {cells} AS c
                 WHERE c.shard = place.shard AND c.tbl = place.tbl AND c.key = item.key LIMIT 1) AS found
    )) RETURNING 1
) SELECT -count(*) FROM gone
"""

_COUNT = """
INSERT INTO potok.counts AS c VALUES (%s, %s, %s, %s)
ON CONFLICT (query, shard, tbl) DO UPDATE SET cells = c.cells + EXCLUDED.cells
"""

_GET = """
SELECT item.key, found.cell
FROM (SELECT %s::int AS shard, %s::text AS tbl) AS place, unnest(%b::bytea[]) AS item (key),
LATERAL (SELECT c.cell FROM {cells} AS c
         WHERE c.shard = place.shard AND c.tbl = place.tbl AND c.key = item.key LIMIT 1) AS found
"""

_PAGE = "SELECT key, cell FROM {cells} WHERE shard = %s AND tbl = %s AND key >= %b AND key < %b ORDER BY key LIMIT %s"

_RANGES = """
SELECT span.number, found.key, found.cell
FROM unnest(%b::bytea[], %b::bytea[]) WITH ORDINALITY AS span (start, stop, number)
CROSS JOIN LATERAL (
    SELECT key, cell FROM {cells} WHERE shard = %s AND tbl = %s AND key >= span.start AND key < span.stop
) AS found
ORDER BY span.number, found.key
"""


class PostgresStore(Store):
    def __init__(self, where: Where, query: str, shard: int, *, create: bool = True) -> None:
        self._query, self._shard, self._connections = query, shard, connections_to(where)
        self.location = f"{where} (query {query}, shard {shard})"
        make_state_tables(self._connections, query)
        if not create and self.attempt() is None:
            raise StateMissing(self.location)

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        if not keys:
            return []
        rows = self._rows(_GET, [self._shard, table, Blobs(keys)])
        return list(map(dict(rows).get, keys))

    def put_many(self, attempt: Attempt, writes: Writes, removals: Removals = ()) -> None:
        # Of two writes to one key the last counts, and one statement cannot change a row twice.
        together: dict[str, dict[bytes, bytes]] = {}
        for table, items in writes:
            together.setdefault(table, {}).update(items)
        removed = [(table, keys) for table, keys in removals if keys]

        def work(connection: Connection) -> None:
            with connection.transaction():
                self._raise_fence(connection, attempt)
                for table, keys in removed:
                    self._change(connection, _REMOVE, table, [keys])
                for table, cells in together.items():
                    self._change(connection, _PUT, table, [list(cells), list(cells.values())])

        self._connections.run(work)

    def _raise_fence(self, connection: Connection, attempt: Attempt) -> None:
        if connection.execute(_RAISE, [self._query, self._shard, *attempt]).fetchone() is None:
            highest = self._seen(connection)
            assert highest is not None
            raise StaleAttempt(attempt, highest, self.location)

    def _change(self, connection: Connection, statement: str, table: str, columns: Sequence[list[bytes]]) -> None:
        """Change cells in chunks, and update the cell count of the table."""
        more = 0
        for first in range(0, len(columns[0]), CHUNK):
            arrays = [Blobs(column[first : first + CHUNK]) for column in columns]
            found = connection.execute(self._sql(statement), [self._shard, table, *arrays]).fetchone()
            assert found is not None
            more += int(str(found[0]))
        connection.execute(_COUNT, [self._query, self._shard, table, more])

    def page(self, table: str, start: bytes = b"", stop: bytes | None = None, *, limit: int) -> list[Row]:
        return self._rows(_PAGE, [self._shard, table, start, BEYOND if stop is None else stop, limit])

    def ranges(self, table: str, ranges: Sequence[Range]) -> list[list[Row]]:
        if not ranges:
            return []
        bounds = [start for start, _ in ranges], [BEYOND if stop is None else stop for _, stop in ranges]
        found: list[list[Row]] = [[] for _ in ranges]
        for number, key, cell in self._rows(_RANGES, [*map(Blobs, bounds), self._shard, table]):
            found[number - 1].append((key, cell))
        return found

    def entries(self, table: str) -> int:
        statement = "SELECT cells FROM potok.counts WHERE query = %s AND shard = %s AND tbl = %s"
        rows = self._rows(statement, [self._query, self._shard, table])
        return rows[0][0] if rows else 0

    def tables(self) -> list[str]:
        statement = 'SELECT tbl FROM potok.counts WHERE query = %s AND shard = %s ORDER BY tbl COLLATE "C"'
        return [name for (name,) in self._rows(statement, [self._query, self._shard])]

    def drop_tables(self, tables: Sequence[str]) -> None:
        def work(connection: Connection) -> None:
            with connection.transaction():
                parameters = [self._shard, list(tables)]
                connection.execute(self._sql("DELETE FROM {cells} WHERE shard = %s AND tbl = ANY(%s)"), parameters)
                forget = "DELETE FROM potok.counts WHERE query = %s AND shard = %s AND tbl = ANY(%s)"
                connection.execute(forget, [self._query, *parameters])

        self._connections.run(work)

    def attempt(self) -> Attempt | None:
        return self._connections.run(self._seen)

    def _seen(self, connection: Connection) -> Attempt | None:
        statement = "SELECT epoch, batch FROM potok.fences WHERE query = %s AND shard = %s"
        found: Any = connection.execute(statement, [self._query, self._shard]).fetchone()
        return None if found is None else Attempt(*found)

    def clear(self) -> None:
        def work(connection: Connection) -> None:
            with connection.transaction():
                connection.execute(self._sql("DELETE FROM {cells} WHERE shard = %s"), [self._shard])
                for table in (SQL("potok.counts"), SQL("potok.fences")):
                    forget = SQL("DELETE FROM {} WHERE query = %s AND shard = %s").format(table)
                    connection.execute(forget, [self._query, self._shard])

        self._connections.run(work)

    def size_bytes(self) -> int:
        """Estimate the shard's part of the table, which all shards of the query share."""
        statement = """
            SELECT pg_total_relation_size(%s::regclass) / greatest(count(*), 1) FROM potok.fences WHERE query = %s
        """
        rows = self._rows(statement, [cells_text(self._query), self._query])
        return int(rows[0][0])

    def close(self) -> None:
        """Do nothing: the connections belong to the process, which closes them at exit."""

    def _sql(self, statement: str) -> Composed:
        return SQL(statement).format(cells=cells_of(self._query))

    def _rows(self, statement: str, values: list[Any]) -> list[Any]:
        def work(connection: Connection) -> list[Any]:
            return connection.execute(self._sql(statement), values, binary=True).fetchall()

        return self._connections.run(work)

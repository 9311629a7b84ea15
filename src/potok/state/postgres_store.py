"""The cells of one shard of a query in PostgreSQL.

A write is one transaction. It first updates the fence row of the shard and holds its lock until the end, so that
attempts on one shard are serialized and a lower one is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier

from potok.backends.postgres.arrays import Blobs
from potok.backends.postgres.connections import Connection, Connections, connections_to, rejected
from potok.backends.postgres.tables import make_tables, table_exists
from potok.backends.state_url import StoreUnreachable, Where
from potok.redact import safe_cause
from potok.state.fence import Attempt, StaleAttempt
from potok.state.store import Range, Removals, Row, ShardSnapshot, StateMissing, Store, Writes, stored_key

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


_FENCES = """
CREATE TABLE IF NOT EXISTS potok.fences (
    query text, shard int, epoch bigint NOT NULL, batch bigint NOT NULL, PRIMARY KEY (query, shard)
)
"""

_COUNTS = """
CREATE TABLE IF NOT EXISTS potok.counts (
    query text, shard int, tbl text, cells bigint NOT NULL, PRIMARY KEY (query, shard, tbl)
)
"""

# Cells are updated often: free space in each page enables heap-only updates, which do not touch the index.
_CELLS = """
CREATE TABLE IF NOT EXISTS {} (
    shard int, tbl text COLLATE "C", key bytea, cell bytea NOT NULL, PRIMARY KEY (shard, tbl, key)
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05)
"""

_LONGEST_NAME = 50
"""PostgreSQL truncates names after 63 bytes."""


def cells_of(query: str) -> Identifier:
    """Return the table with the cells of a query."""
    name = (
        query if len(query) <= _LONGEST_NAME else f"{query[:30]}-{blake2b(query.encode(), digest_size=8).hexdigest()}"
    )
    return Identifier("potok", f"cells {name}")


def cells_text(query: str) -> str:
    """Return the same as text, quoted for a statement."""
    return cells_of(query).as_string(None)


def make_state_tables(connections: Connections, query: str) -> None:
    shared = {"potok.fences": SQL(_FENCES), "potok.counts": SQL(_COUNTS)}
    make_tables(connections, {**shared, cells_text(query): SQL(_CELLS).format(cells_of(query))})


def drop_state_tables(where: Where, query: str) -> None:
    """Remove all state of a query, of all shards."""
    connections = connections_to(where)
    make_state_tables(connections, query)

    def work(connection: Connection) -> None:
        with connection.transaction():
            connection.execute(SQL("DROP TABLE IF EXISTS {}").format(cells_of(query)))
            connection.execute("DELETE FROM potok.fences WHERE query = %s", [query])
            connection.execute("DELETE FROM potok.counts WHERE query = %s", [query])

    connections.run(work)
    connections.known.discard(cells_text(query))


PAGE = 5_000

_ROWS = "SELECT key, cell FROM {} WHERE shard = %s AND tbl = %s AND key >= %b AND key < %b ORDER BY key LIMIT %s"
_GET_COMMITTED = "SELECT cell FROM {} WHERE shard = %s AND tbl = %s AND key = %b"


class PostgresSnapshot(ShardSnapshot):
    frozen = True

    def __init__(self, connection: Connection, query: str, shard: int) -> None:
        self._connection, self._query, self._shard = connection, query, shard

    def get(self, table: str, key: bytes) -> bytes | None:
        found = self._all(_GET_COMMITTED, table, stored_key(key))
        return found[0][0] if found else None

    def rows(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[Row]:
        while True:
            rows = self._all(_ROWS, table, start, BEYOND if stop is None else stop, PAGE)
            yield from rows
            if len(rows) < PAGE:
                return
            start = rows[-1][0] + b"\x00"

    def tables(self) -> list[str]:
        return [name for (name,) in self._shared("SELECT tbl FROM potok.counts WHERE query = %s AND shard = %s")]

    def attempt(self) -> Attempt | None:
        found = self._shared("SELECT epoch, batch FROM potok.fences WHERE query = %s AND shard = %s")
        return Attempt(*found[0]) if found else None

    def _all(self, statement: str, *values: object) -> list[Any]:
        composed = SQL(statement).format(cells_of(self._query))
        return self._connection.execute(composed, [self._shard, *values], binary=True).fetchall()

    def _shared(self, statement: str) -> list[Any]:
        return self._connection.execute(statement, [self._query, self._shard]).fetchall()


class EmptySnapshot(ShardSnapshot):
    """A shard of a query that was never written."""

    frozen = True

    def get(self, table: str, key: bytes) -> bytes | None:
        return None

    def rows(self, table: str, start: bytes = b"", stop: bytes | None = None) -> Iterator[Row]:
        return iter(())

    def tables(self) -> list[str]:
        return []

    def attempt(self) -> Attempt | None:
        return None


@contextmanager
def postgres_snapshots(where: Where, query: str, shards: int) -> Iterator[list[ShardSnapshot]]:
    connections = connections_to(where)
    # Replace a connection that was lost while idle.
    connections.run(lambda connection: connection.execute("SELECT 1"))
    try:
        with connections.borrowed() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            # The first statement, not BEGIN, decides what the transaction sees.
            if table_exists(connection, cells_text(query)):
                yield [PostgresSnapshot(connection, query, shard) for shard in range(shards)]
            else:
                yield [EmptySnapshot() for _ in range(shards)]
            connection.execute("COMMIT")
    except psycopg.OperationalError as error:
        raise StoreUnreachable(str(where), str(error).strip()) from error
    except psycopg.Error as error:
        raise rejected(where, error) from safe_cause(error)

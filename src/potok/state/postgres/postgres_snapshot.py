"""The shards of a query in PostgreSQL at one instant: one REPEATABLE READ transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.sql import SQL

from potok.backends.postgres.connections import Connection, connections_to, rejected
from potok.backends.postgres.tables import table_exists
from potok.backends.state_url import StoreUnreachable, Where
from potok.redact import safe_cause
from potok.state.fence import Attempt
from potok.state.postgres.postgres_store import BEYOND
from potok.state.postgres.schema import cells_of, cells_text
from potok.state.store import Row, ShardSnapshot, stored_key

PAGE = 5_000

_ROWS = "SELECT key, cell FROM {} WHERE shard = %s AND tbl = %s AND key >= %b AND key < %b ORDER BY key LIMIT %s"
_GET = "SELECT cell FROM {} WHERE shard = %s AND tbl = %s AND key = %b"


class PostgresSnapshot(ShardSnapshot):
    frozen = True

    def __init__(self, connection: Connection, query: str, shard: int) -> None:
        self._connection, self._query, self._shard = connection, query, shard

    def get(self, table: str, key: bytes) -> bytes | None:
        found = self._all(_GET, table, stored_key(key))
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

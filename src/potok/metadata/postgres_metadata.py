"""The books of queries in PostgreSQL: a table of marks, changed in one transaction."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from psycopg.sql import SQL

from potok.backends.postgres.connections import Connection, connections_to
from potok.backends.postgres.tables import make_tables
from potok.backends.state_url import Where
from potok.metadata.metadata_store import MetadataConflict, MetadataStore

_TABLE = """
CREATE TABLE IF NOT EXISTS potok.marks (name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL, writer bytea NOT NULL)
"""

_PUT = """
INSERT INTO potok.marks VALUES (%s, %b, %b)
ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value, writer = EXCLUDED.writer
"""


class PostgresMetadata(MetadataStore):
    def __init__(self, where: Where) -> None:
        self._where, self._connections = where, connections_to(where)
        make_tables(self._connections, {"potok.marks": SQL(_TABLE)})

    def __reduce__(self) -> tuple[object, ...]:
        return PostgresMetadata, (self._where,)

    def get_metadata(self, name: str) -> bytes | None:
        found = self._rows("SELECT value FROM potok.marks WHERE name = %s", name)
        return found[0][0] if found else None

    def list_metadata(self, prefix: str) -> dict[str, bytes]:
        return dict(self._rows("SELECT name, value FROM potok.marks WHERE starts_with(name, %s) ORDER BY name", prefix))

    def set_metadata(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None:
        writer = secrets.token_bytes(16)

        def work(connection: Connection) -> None:
            with connection.transaction():
                # Names are locked, not rows: a mark that is expected to be absent has none.
                for name in sorted({*updates, *expect}):
                    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 7076))", [name])
                if not self._written(connection, writer, updates):
                    self._check(connection, expect)
                    self._put(connection, writer, updates)

        self._connections.run(work)

    def _written(self, connection: Connection, writer: bytes, updates: Mapping[str, bytes | None]) -> bool:
        """Whether this very change was made: its answer was lost, and it is sent again."""
        kept = [name for name, value in updates.items() if value is not None][:1]
        statement = "SELECT 1 FROM potok.marks WHERE name = ANY(%s) AND writer = %b"
        return connection.execute(statement, [kept, writer]).fetchone() is not None

    def _check(self, connection: Connection, expect: Mapping[str, bytes | None]) -> None:
        statement = "SELECT name, value FROM potok.marks WHERE name = ANY(%s)"
        rows: list[Any] = connection.execute(statement, [list(expect)], binary=True).fetchall()
        found: dict[str, bytes] = dict(rows)
        for name, value in expect.items():
            if found.get(name) != value:
                raise MetadataConflict(name)

    def _put(self, connection: Connection, writer: bytes, updates: Mapping[str, bytes | None]) -> None:
        for name, value in updates.items():
            if value is None:
                connection.execute("DELETE FROM potok.marks WHERE name = %s", [name])
            else:
                connection.execute(_PUT, [name, value, writer])

    def _rows(self, statement: str, value: str) -> list[Any]:
        return self._connections.run(lambda connection: connection.execute(statement, [value], binary=True).fetchall())

    def close(self) -> None:
        """The connections are those of the process, which closes them when it ends."""

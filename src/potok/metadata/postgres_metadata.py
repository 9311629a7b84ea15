"""Query metadata in PostgreSQL: one table, changed in one transaction."""

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
CREATE TABLE IF NOT EXISTS potok.metadata (
  name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL, writer bytea NOT NULL
)
"""

_PUT = """
INSERT INTO potok.metadata VALUES (%s, %b, %b)
ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value, writer = EXCLUDED.writer
"""


class PostgresMetadata(MetadataStore):
    def __init__(self, where: Where) -> None:
        self._where, self._connections = where, connections_to(where)
        make_tables(self._connections, {"potok.metadata": SQL(_TABLE)})

    def __reduce__(self) -> tuple[object, ...]:
        return PostgresMetadata, (self._where,)

    def get_metadata(self, name: str) -> bytes | None:
        found = self._rows("SELECT value FROM potok.metadata WHERE name = %s", name)
        return found[0][0] if found else None

    def list_metadata(self, prefix: str) -> dict[str, bytes]:
        return dict(
            self._rows("SELECT name, value FROM potok.metadata WHERE starts_with(name, %s) ORDER BY name", prefix)
        )

    def set_metadata(self, updates: Mapping[str, bytes | None], expect: Mapping[str, bytes | None] = {}) -> None:
        writer = secrets.token_bytes(16)

        def work(connection: Connection) -> None:
            with connection.transaction():
                # Lock names, not rows: a key that is expected to be absent has no row.
                for name in sorted({*updates, *expect}):
                    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 7076))", [name])
                if not self._written(connection, writer, updates):
                    self._check(connection, expect)
                    self._put(connection, writer, updates)

        self._connections.run(work)

    def _written(self, connection: Connection, writer: bytes, updates: Mapping[str, bytes | None]) -> bool:
        """Return whether this change was already made: its response was lost and it is sent again."""
        stored = [name for name, value in updates.items() if value is not None][:1]
        statement = "SELECT 1 FROM potok.metadata WHERE name = ANY(%s) AND writer = %b"
        return connection.execute(statement, [stored, writer]).fetchone() is not None

    def _check(self, connection: Connection, expect: Mapping[str, bytes | None]) -> None:
        statement = "SELECT name, value FROM potok.metadata WHERE name = ANY(%s)"
        rows: list[Any] = connection.execute(statement, [list(expect)], binary=True).fetchall()
        found: dict[str, bytes] = dict(rows)
        for name, value in expect.items():
            if found.get(name) != value:
                raise MetadataConflict(name)

    def _put(self, connection: Connection, writer: bytes, updates: Mapping[str, bytes | None]) -> None:
        for name, value in updates.items():
            if value is None:
                connection.execute("DELETE FROM potok.metadata WHERE name = %s", [name])
            else:
                connection.execute(_PUT, [name, value, writer])

    def _rows(self, statement: str, value: str) -> list[Any]:
        return self._connections.run(lambda connection: connection.execute(statement, [value], binary=True).fetchall())

    def close(self) -> None:
        """Do nothing: the connections belong to the process, which closes them at exit."""

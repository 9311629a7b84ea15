"""The fence of a sink in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import psycopg

from potok.sinks.sql_fence import SqlFences

Connection = psycopg.Connection[tuple[Any, ...]]

_CREATE = """
CREATE TABLE IF NOT EXISTS potok_fences (
    query text, step text, epoch bigint NOT NULL, batch bigint NOT NULL, digest text NOT NULL, refused jsonb NOT NULL,
    PRIMARY KEY (query, step)
)"""


class PostgresFences(SqlFences[Connection]):
    table: ClassVar[str] = "potok_fences"
    key: ClassVar[tuple[str, str]] = ("query", "step")

    def ensure(self, connection: Connection, first: Sequence[object]) -> None:
        if connection.execute("SELECT to_regclass('potok_fences')").fetchone() == (None,):
            connection.execute(_CREATE)
        self.change(connection, "INSERT INTO potok_fences VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", *first)

    def lock(self, connection: Connection, query: str, *key: object) -> Sequence[Any] | None:
        return connection.execute(_with_values(f"{query} FOR UPDATE"), key).fetchone()

    def change(self, connection: Connection, statement: str, *values: object) -> None:
        connection.execute(_with_values(statement), values)


def _with_values(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()

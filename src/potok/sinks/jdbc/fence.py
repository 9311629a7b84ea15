"""The fence of a sink in a database with a JDBC driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from potok.sinks.jdbc.statements import FENCES
from potok.sinks.sink_spec import Opening
from potok.sinks.spark_access import JdbcConnection, JdbcError
from potok.sinks.sql_fence import SqlFences

_EXISTS = "23"
"""The class of SQLSTATE of a violated constraint."""


class JdbcFences(SqlFences[JdbcConnection]):
    """`create` is the statement that creates the table in the dialect of the database."""

    table: ClassVar[str] = FENCES
    key: ClassVar[tuple[str, str]] = ("query_name", "step_name")

    def __init__(self, opening: Opening, label: str) -> None:
        super().__init__(opening, label)
        self.create = ""

    def ensure(self, connection: JdbcConnection, first: Sequence[object]) -> None:
        """Do so in transactions of their own: a failed statement voids a transaction in some databases."""
        try:
            found = connection.rows(f"SELECT epoch FROM {FENCES} WHERE {self._this}", *first[:2])
        except JdbcError as error:
            connection.rollback()
            if error.transient:
                raise
            connection.run(self.create)
            found = []
        connection.commit()
        if found:
            return
        try:
            connection.run(f"INSERT INTO {FENCES} VALUES (?, ?, ?, ?, ?, ?)", *first)
            connection.commit()
        except JdbcError as error:
            connection.rollback()
            if not error.state.startswith(_EXISTS):
                raise

    def lock(self, connection: JdbcConnection, query: str, *key: object) -> Sequence[Any] | None:
        # An update locks in every database, a SELECT does not.
        connection.run(f"UPDATE {FENCES} SET epoch = epoch WHERE {self._this}", *key)
        return next(iter(connection.rows(query, *key)), None)

    def change(self, connection: JdbcConnection, statement: str, *values: object) -> None:
        connection.run(statement, *values)

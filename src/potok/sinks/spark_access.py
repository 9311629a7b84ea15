"""What a sink may need of Spark: the executor of a program offers it, the one of a test driver does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from potok.errors import SetupError


class SparkNeeded(SetupError):
    """A sink that works through Spark, in a process without it."""

    def __init__(self, step: str, verb: str) -> None:
        super().__init__(
            f'sink "{step}" needs Spark: {verb} writes through it',
            hint="in a test, write TestDriver(builder, spark=True)",
        )


@dataclass(frozen=True, slots=True)
class JdbcAddress:
    """Where a JDBC driver connects to. Properties may contain a password and are not shown."""

    url: str
    driver: str
    jar: str
    properties: Mapping[str, str]


class JdbcError(Exception):
    """An error of a JDBC driver, with the SQLSTATE that tells its kind."""

    def __init__(self, state: str, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.state = state
        self.transient = transient


class JdbcConnection(Protocol):
    """A connection to a database, in transactions. Every method may raise `JdbcError`."""

    @property
    def product(self) -> str:
        """Return the name of the database, such as PostgreSQL."""

    @property
    def quote(self) -> str:
        """Return the quotation mark of identifiers."""

    def run(self, statement: str, *values: object) -> int:
        """Run a statement, and return how many rows it changed."""

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""

    def replace_table(self, table: str, rows: pa.Table) -> None:
        """Write a table of its own, outside the transaction, in parallel."""

    def tables(self, schema: str, prefix: str) -> list[str]:
        """Return the names of the tables that begin with these characters."""

    def create_table(self, table: str, empty: pa.Table, types: str) -> None:
        """Create a table for rows, outside the transaction; `types` declares some of its columns."""

    def discard_table(self, table: str) -> None:
        """Drop a table if it exists, and if the database answers; end the transaction."""

    def savepoint(self) -> Any:
        """Return a mark to roll back to."""

    def rollback(self, savepoint: Any = None) -> None:
        """Discard what was written in this transaction, or since a savepoint."""

    def commit(self) -> None:
        """Commit the transaction; the next one begins."""

    def close(self) -> None:
        """Release the connection."""


class SparkAccess(Protocol):
    """Access to Spark from the driver process."""

    def session(self) -> Any:
        """Return the session of this process."""

    def connect_jdbc(self, address: JdbcAddress) -> JdbcConnection:
        """Connect to a database with a driver in Spark's JVM."""

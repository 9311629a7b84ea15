"""Create Potok's tables in a PostgreSQL database, all in the schema `potok`."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.sql import SQL, Composed

from potok.backends.postgres.connections import Connection, Connections


def table_exists(connection: Connection, name: str) -> bool:
    return _true(connection, "SELECT to_regclass(%s) IS NOT NULL", name)


def make_tables(connections: Connections, wanted: Mapping[str, SQL | Composed]) -> None:
    """Create the tables that are missing, each with its statement."""
    missing = {name: made for name, made in wanted.items() if name not in connections.known}

    def work(connection: Connection) -> None:
        for name, made in missing.items():
            if not table_exists(connection, name):
                with connection.transaction():
                    # Serialize creation: concurrent CREATE statements fail.
                    connection.execute("SELECT pg_advisory_xact_lock(hashtext('potok'))")
                    if not _true(connection, "SELECT to_regnamespace(%s) IS NOT NULL", "potok"):
                        connection.execute("CREATE SCHEMA potok")
                    connection.execute(made)

    if missing:
        connections.run(work)
        connections.known |= missing.keys()


def _true(connection: Connection, statement: str, value: str) -> bool:
    found = connection.execute(statement, [value]).fetchone()
    return found is not None and bool(found[0])

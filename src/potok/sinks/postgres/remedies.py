"""What to do about an error of the PostgreSQL server."""

from __future__ import annotations

import psycopg
from psycopg import errors as pg

from potok.redact import redact

MISFITS = (
    pg.WrongObjectType,
    pg.ObjectNotInPrerequisiteState,
    pg.UndefinedFunction,
    pg.UndefinedObject,
    pg.DatatypeMismatch,
    pg.GeneratedAlways,
)
"""Errors of statements that can never write this table. They are found when the sink is opened."""

PASSING = (pg.ReadOnlySqlTransaction, pg.LockNotAvailable)
"""Errors that a retry may not meet, besides `OperationalError`: a failover is under way, or the server is busy."""


def message(error: psycopg.Error) -> str:
    return redact(str(error).strip()) or type(error).__name__


def remedy(error: psycopg.Error, table: str, user: str) -> str | None:
    """Return what to type or to check, or None if repeating the batch is all there is to do."""
    grantee = f'"{user}"' if user else "the user of the sink"
    match error:
        case pg.InsufficientPrivilege():
            tables = f"{table} and potok_fences" if "potok_fences" not in str(error) else "potok_fences"
            return (
                f"as the owner: GRANT SELECT, INSERT, UPDATE, DELETE ON {tables.replace(' and ', ', ')} TO {grantee}; "
                "tables that do not exist are created only by users who may create them"
            )
        case pg.InvalidSchemaName():
            return f"create it: CREATE SCHEMA {table.rpartition('.')[0] or 'public'}"
        case pg.ReadOnlySqlTransaction():
            return "use the URL of the primary; after a failover, the batch is repeated until the server accepts writes"
        case pg.UndefinedTable() | pg.UndefinedColumn():
            return "the table was changed while the query was running: start the query again, which checks it"
        case pg.DiskFull() | pg.OutOfMemory():
            return "free some space on the server; the batch is delivered again"
        case psycopg.ProgrammingError() if error.sqlstate is None:
            return "check the URL of the sink: PostgreSQL does not know this option"
        case psycopg.OperationalError() if "FATAL" in str(error) or "sslmode" in str(error):
            return "check user, password, database and options in the URL of the sink"
        case psycopg.OperationalError() if error.sqlstate is None:
            return "check that the server is running, and host and port in the URL of the sink"
    return None

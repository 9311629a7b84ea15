"""Connect to a PostgreSQL server, and check or create what a capture needs there: slot, publication, keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg2
import psycopg2.extensions
import psycopg2.extras
from psycopg2 import sql

from potok.errors import PotokError
from potok.redact import redact, redact_url
from potok.sources.cdc.envelopes.shape import Column, Shape
from potok.sources.cdc.errors import CaptureStopped, NotReady
from potok.sources.cdc.postgres.types import PostgresType, kind_of, spelled
from potok.topology.capture import Capture

Connection = Any
"""psycopg2 has no types."""

_ENDED = "no COPY in progress"
"""What the driver says of a replication stream that the server has ended."""

_SETTINGS = (
    "-c datestyle=ISO -c intervalstyle=postgres -c timezone=UTC -c extra_float_digits=3 -c bytea_output=hex "
    "-c client_min_messages=warning -c statement_timeout=0 -c idle_in_transaction_session_timeout=0"
)
"""Values are text, so the session has to print them the same way on every server."""

_CONNECT_S = 10
_OLDEST = 140_000


class DatabaseUnreachable(PotokError):
    """A database that does not answer, or has closed the connection."""

    passing = True

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"the database at {redact_url(url)} cannot be reached: {redact(why.strip())}",
            hint="check host, port and password, and that the server runs",
        )


class Identity(NamedTuple):
    """Which server this is, and on which timeline."""

    system: str
    timeline: int


class Slot(NamedTuple):
    confirmed: int
    lost: bool
    active: bool


def connect(url: str, *, replication: bool = False) -> Connection:
    """Open a connection whose session prints values as the decoder expects them."""
    factory = psycopg2.extras.LogicalReplicationConnection if replication else psycopg2.extensions.connection
    try:
        connection = psycopg2.connect(
            url,
            connection_factory=factory,
            options=_SETTINGS,
            client_encoding="UTF8",
            connect_timeout=_CONNECT_S,
            application_name="potok",
            keepalives_idle=30,
        )
    except psycopg2.OperationalError as error:
        if "replication" in str(error) and "must be" in str(error):
            raise NotReady(
                f"the user may not replicate: {redact(str(error)).strip()}", "ALTER ROLE ... REPLICATION"
            ) from None
        raise DatabaseUnreachable(url, str(error)) from None
    except UnicodeError as error:
        raise DatabaseUnreachable(url, f"the answer is not one of PostgreSQL ({error})") from None
    if not replication:
        connection.autocommit = True
    return connection


@contextmanager
def answered(url: str) -> Iterator[None]:
    """Translate errors of the driver: a lost connection can be retried, other errors cannot."""
    try:
        yield
    except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
        raise DatabaseUnreachable(url, str(error)) from None
    except psycopg2.Error as error:
        if _ENDED in str(error):
            raise DatabaseUnreachable(url, "the server has ended the replication stream") from None
        raise CaptureStopped(f"the database rejects the request: {redact(str(error)).strip()}") from None


def identity_of(replication: Connection) -> Identity:
    with replication.cursor() as cursor:
        cursor.execute("IDENTIFY_SYSTEM")
        system, timeline, *_ = cursor.fetchone()
    return Identity(str(system), int(timeline))


class Server:
    """The statements of a capture on its database."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.connection = connect(capture.url)
        self.version: int = self.connection.server_version

    def close(self) -> None:
        self.connection.close()

    def rows(self, query: str | sql.Composable, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with answered(self.capture.url), self.connection.cursor() as cursor:
            cursor.execute(query, values)
            return cursor.fetchall() if cursor.description else []

    def check(self) -> None:
        """Raise unless the server can be captured, with what to run there."""
        if self.version < _OLDEST:
            raise CaptureStopped(
                f"PostgreSQL {self.version // 10_000} cannot be captured", hint="update the server to 14 or later"
            )
        [(level,)] = self.rows("SHOW wal_level")
        if level != "logical":
            raise NotReady(
                f'wal_level is "{level}", and change data capture needs "logical"',
                "ALTER SYSTEM SET wal_level = 'logical'",
                "-- then restart the server",
            )

    def prepare_publication(self) -> None:
        """Create the publication, or add the tables that it lacks."""
        name = self.capture.publication
        shapes = {table: self.shape(table) for table in self.capture.tables}
        tables = [sql.Identifier(shape.schema, shape.table) for shape in shapes.values()]
        found = self.rows(
            "SELECT pubinsert, pubupdate, pubdelete, pubtruncate, puballtables FROM pg_publication WHERE pubname = %s",
            [name],
        )
        if not found:
            statement = sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)")
            self._change(statement.format(sql.Identifier(name), sql.SQL(", ").join(tables)))
            return
        if not all(found[0][:4]):
            kinds = "publish = 'insert, update, delete, truncate'"
            raise NotReady(f'publication "{name}" leaves out changes', f"ALTER PUBLICATION {name} SET ({kinds})")
        self._refuse_filters(name)
        published = self.rows(
            "SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = %s", [name]
        )
        missing = shapes.keys() - {table for (table,) in published}
        if missing:
            lacking = [sql.Identifier(shapes[table].schema, shapes[table].table) for table in sorted(missing)]
            statement = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}")
            self._change(statement.format(sql.Identifier(name), sql.SQL(", ").join(lacking)))

    def _refuse_filters(self, name: str) -> None:
        """Rows or columns that are filtered out would be missing without a trace."""
        if self.version < 150_000:
            return
        filtered = self.rows(
            "SELECT prrelid::regclass::text FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid "
            "WHERE p.pubname = %s AND (prqual IS NOT NULL OR prattrs IS NOT NULL)",
            [name],
        )
        if filtered:
            table = filtered[0][0]
            raise NotReady(
                f'publication "{name}" filters rows or columns of {table}',
                f"ALTER PUBLICATION {name} SET TABLE {table}",
            )

    def slot(self) -> Slot | None:
        found = self.rows(
            "SELECT confirmed_flush_lsn - '0/0', wal_status = 'lost', active, plugin, database = current_database() "
            "FROM pg_replication_slots WHERE slot_name = %s",
            [self.capture.slot],
        )
        if not found:
            return None
        confirmed, lost, active, plugin, here = found[0]
        if plugin != "pgoutput" or not here:
            raise CaptureStopped(
                f'replication slot "{self.capture.slot}" belongs to another consumer', hint='choose another: slot="..."'
            )
        return Slot(int(confirmed or 0), bool(lost), active)

    def create_slot(self) -> int:
        """Create the slot and return where it begins. The server waits for the transactions that are open."""
        [(lsn,)] = self.rows(
            "SELECT lsn - '0/0' FROM pg_create_logical_replication_slot(%s, 'pgoutput')", [self.capture.slot]
        )
        return int(lsn)

    def drop_slot(self) -> None:
        self.rows(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
            [self.capture.slot],
        )

    def drop(self) -> None:
        """Remove the slot and the publication."""
        self.drop_slot()
        self.rows(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(self.capture.publication)))

    def emit(self, prefix: str, content: str) -> None:
        """Write a message into the stream of changes, behind all transactions that are committed."""
        self.rows("SELECT pg_logical_emit_message(true, %s, %s)", [prefix, content])

    def key_names(self, table: str) -> tuple[str, ...]:
        """Return the primary key of a table."""
        found = self.rows(
            "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k(n, at) "
            "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.n "
            "WHERE i.indisprimary AND i.indrelid = %s::regclass ORDER BY k.at",
            [quoted(table)],
        )
        return tuple(name for (name,) in found)

    def shape(self, table: str) -> Shape:
        """Return the columns of a table as they are in the catalog."""
        keys = self.key_names(table) if self.exists(table) else ()
        schema, _, name = table.partition(".")
        if not keys:
            if not self.exists(table):
                raise CaptureStopped(f'table "{table}" does not exist', hint="check its name and its schema")
            raise NotReady(f'table "{table}" has no primary key', f"ALTER TABLE {table} ADD PRIMARY KEY (...)")
        found = self.rows(
            "SELECT a.attname, a.atttypid, a.atttypmod, coalesce(b.typname, t.typname) FROM pg_attribute a "
            "JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype "
            "WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' "
            "ORDER BY a.attnum",
            [quoted(table)],
        )
        columns = [
            column_of(column, PostgresType(oid, modifier, type_name), self.capture, key=column in keys)
            for column, oid, modifier, type_name in found
        ]
        return Shape(schema, name, tuple(columns))

    def exists(self, table: str) -> bool:
        return bool(self.rows("SELECT 1 WHERE to_regclass(%s) IS NOT NULL", [quoted(table)]))

    def type_names(self) -> dict[int, str]:
        """Return the names of all types, by which pgoutput's numbers are resolved. A domain has that of its base."""
        return dict(
            self.rows(
                "SELECT t.oid::int8, coalesce(b.typname, t.typname) FROM pg_type t "
                "LEFT JOIN pg_type b ON b.oid = t.typbasetype"
            )
        )

    def estimated_rows(self, table: str) -> int:
        [(count,)] = self.rows("SELECT reltuples::int8 FROM pg_class WHERE oid = %s::regclass", [quoted(table)])
        return max(0, int(count))

    def _change(self, statement: sql.Composable) -> None:
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(statement)
        except psycopg2.errors.InsufficientPrivilege as error:
            text = statement.as_string(self.connection)
            raise NotReady(f"the user may not do this: {str(error).strip()}", text) from None
        except psycopg2.errors.DuplicateObject:
            # Another start of the same capture was faster.
            return
        except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
            raise DatabaseUnreachable(self.capture.url, str(error)) from None


def column_of(name: str, type_: PostgresType, capture: Capture, *, key: bool) -> Column:
    return Column(name, spelled(type_), kind_of(type_, capture.decimals, capture.times), key)


def quoted(table: str) -> str:
    """Return `schema.table` as SQL, whatever characters are in it."""
    schema, _, name = table.partition(".")
    return ".".join('"' + re.sub('"', '""', part) + '"' for part in (schema, name))


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"

"""Connect to a MariaDB or MySQL server, and check what a capture needs there."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.constants import ER

from potok.errors import PotokError, TopologyError
from potok.redact import redact, redact_url
from potok.sources.cdc.envelopes.shape import Column, Shape
from potok.sources.cdc.errors import CaptureStopped, NotReady
from potok.sources.cdc.mysql.types import BYTES, TEXTS, MysqlType, kind_of, spelled
from potok.topology.capture import Capture

_CONNECT_S = 10
_READ_S = 600
_OLDEST = {"mariadb": (10, 5), "mysql": (8, 0)}
_DENIED = (
    ER.SPECIFIC_ACCESS_DENIED_ERROR,
    ER.ACCESS_DENIED_ERROR,
    ER.TABLEACCESS_DENIED_ERROR,
    ER.DBACCESS_DENIED_ERROR,
)
_SESSION = (
    "SET SESSION time_zone = '+00:00', sql_mode = '', group_concat_max_len = 4294967295, net_write_timeout = 600, "
    "wait_timeout = 86400"
)
_LOG_STATUS = (
    "SELECT JSON_UNQUOTE(JSON_EXTRACT(`LOCAL`, '$.binary_log_file')), JSON_EXTRACT(`LOCAL`, '$.binary_log_position'), "
    "JSON_UNQUOTE(JSON_EXTRACT(`LOCAL`, '$.gtid_executed')) FROM performance_schema.log_status"
)
ADDRESSES = ("uuid", "inet6", "inet4")
"""Types that the binary log describes as bytes; the catalog knows better."""

_GEOMETRIES = (
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "geomcollection",
)


class DatabaseUnreachable(PotokError):
    """A database that does not answer, or has closed the connection."""

    passing = True

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"the database at {redact_url(url)} cannot be reached: {redact(why.strip())}",
            hint="check host, port and password, and that the server runs",
        )


class LogPosition(NamedTuple):
    file: str
    pos: int
    gtid: str


def settings_of(url: str, *, read_s: float = _READ_S) -> dict[str, Any]:
    """Return the arguments of `pymysql.connect` for a URL."""
    parts = urlsplit(url)
    given: dict[str, Any] = {
        "host": parts.hostname or "127.0.0.1",
        "port": parts.port or 3306,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.strip("/")),
        "charset": "utf8mb4",
        "connect_timeout": _CONNECT_S,
        "read_timeout": read_s,
        "autocommit": True,
        "program_name": "potok",
    }
    for name, values in parse_qs(parts.query).items():
        if name not in ("ssl_ca", "ssl_cert", "ssl_key", "unix_socket"):
            hint = "use ssl_ca, ssl_cert, ssl_key or unix_socket"
            raise TopologyError(f'the URL of a MySQL database has no parameter "{name}"', hint=hint)
        given[name] = values[-1]
    if "ssl_ca" in given:
        given["ssl_verify_cert"] = True
        # A socket has no name that could be in a certificate.
        given["ssl_verify_identity"] = "unix_socket" not in given
    return given


@contextmanager
def answered(url: str) -> Iterator[None]:
    """Translate errors of the driver: a lost connection can be retried, other errors cannot."""
    try:
        yield
    except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
        number = error.args[0] if error.args else 0
        if number in _DENIED:
            raise NotReady(f"the user may not do this: {_text(error)}", *_grants(url)) from None
        raise DatabaseUnreachable(url, _text(error)) from None
    except pymysql.err.MySQLError as error:
        if error.args and error.args[0] in _DENIED:
            raise NotReady(f"the user may not do this: {_text(error)}", *_grants(url)) from None
        raise CaptureStopped(f"the database rejects the request: {_text(error)}") from None


def _text(error: Exception) -> str:
    return redact(str(error.args[-1] if error.args else error)).strip()


def _grants(url: str) -> list[str]:
    parts = urlsplit(url)
    user = unquote(parts.username or "")
    return [
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{user}'@'%'",
        f"GRANT SELECT ON `{unquote(parts.path.strip('/'))}`.* TO '{user}'@'%'",
        f"-- on MySQL also: GRANT BACKUP_ADMIN ON *.* TO '{user}'@'%'",
    ]


class Server:
    """The statements of a capture on its database."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        try:
            self.connection = pymysql.connect(**settings_of(capture.url))
        except pymysql.err.MySQLError as error:
            raise DatabaseUnreachable(capture.url, _text(error)) from None
        except (ValueError, LookupError, TypeError, NameError, struct.error) as error:
            raise DatabaseUnreachable(capture.url, f"the answer is not one of MySQL ({error})") from None
        self.rows(_SESSION)
        [(version, server_id)] = self.rows("SELECT @@version, @@server_id")
        self.server_id = int(server_id)
        self.kind = "mariadb" if "mariadb" in version.lower() else "mysql"
        self._version = version
        self._charsets: dict[int, tuple[str, int]] | None = None

    @property
    def is_mariadb(self) -> bool:
        return self.kind == "mariadb"

    def close(self) -> None:
        # The server may be gone already.
        if self.connection.open:
            self.connection.close()

    def rows(self, query: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        with answered(self.capture.url), self.connection.cursor() as cursor:
            cursor.execute(query, values)
            return list(cursor.fetchall())

    def check(self) -> None:
        """Raise unless the server can be captured, with what to run there."""
        version = tuple(int(part) for part in self._version.split(".")[:2])
        if version < _OLDEST[self.kind]:
            oldest = ".".join(map(str, _OLDEST[self.kind]))
            raise CaptureStopped(
                f"version {self._version} cannot be captured", hint=f"update the server to {oldest} or later"
            )
        found = {name.lower(): value for name, value in self.rows("SHOW GLOBAL VARIABLES")}
        if found["log_bin"] != "ON":
            raise NotReady(
                "the server writes no binary log",
                "-- write log_bin, binlog_format=ROW, binlog_row_image=FULL and binlog_row_metadata=FULL into the "
                "section [mysqld] of its configuration, then restart the server",
            )
        needed = {"binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}
        needed |= {"log_bin_compress": "OFF"} if self.is_mariadb else {"binlog_transaction_compression": "OFF"}
        wrong = {name: value for name, value in needed.items() if found.get(name, value) != value}
        if wrong:
            rendered = ", ".join(f"{name} is {found[name]}" for name in wrong)
            statements = [f"SET GLOBAL {name} = '{value}'" for name, value in wrong.items()]
            note = "-- sessions keep what they had: reconnect the clients that write; write the same into [mysqld]"
            raise NotReady(f"the binary log does not have whole rows: {rendered}", *statements, note)
        if not self.is_mariadb and found["gtid_mode"] != "ON":
            steps = ("'WARN'", "'ON'")
            statements = [f"SET GLOBAL enforce_gtid_consistency = {each}" for each in steps]
            modes = ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
            statements += [f"SET GLOBAL gtid_mode = '{mode}'" for mode in modes]
            raise NotReady(f"gtid_mode is {found['gtid_mode']}", *statements)

    def log_position(self) -> LogPosition:
        """Return where the binary log ends, and the transactions that are committed there.

        SHOW MASTER STATUS and SHOW BINARY LOG STATUS may be ahead of what is committed in the tables.
        """
        if not self.is_mariadb:
            [(file, pos, gtid)] = self.rows(_LOG_STATUS)
            return LogPosition(file, int(pos), gtid.replace("\n", ""))
        self.start_snapshot()
        try:
            file, pos = self.snapshot_position()
        finally:
            self.rows("ROLLBACK")
        return LogPosition(file, pos, self.gtid_at(file, pos) or "")

    def start_snapshot(self) -> None:
        """Begin a transaction that sees all tables as of now."""
        self.rows("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.rows("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")

    def snapshot_position(self) -> tuple[str, int]:
        """Return where the snapshot of this transaction is in the log of MariaDB."""
        found = dict(self.rows("SHOW STATUS LIKE 'binlog_snapshot_%'"))
        return found["Binlog_snapshot_file"], int(found["Binlog_snapshot_position"])

    def gtid_at(self, file: str, pos: int) -> str | None:
        """Return the GTIDs of MariaDB before a position in the log; None if the log is not there."""
        [(found,)] = self.rows("SELECT BINLOG_GTID_POS(%s, %s)", (file, pos))
        return None if found is None else sorted_gtids(found)

    def log_files(self) -> dict[str, int]:
        """Return the files of the binary log and their sizes."""
        return {file: int(size) for file, size, *_ in self.rows("SHOW BINARY LOGS")}

    def key_names(self, table: str) -> tuple[str, ...]:
        """Return the primary key of a table, in the order of its index."""
        found = self.rows(
            "SELECT column_name FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s "
            "AND index_name = 'PRIMARY' ORDER BY seq_in_index",
            table.split(".", 1),
        )
        return tuple(name for (name,) in found)

    def shape(self, table: str) -> Shape:
        """Return the columns of a table as they are in the catalog."""
        database, name = table.split(".", 1)
        found = self.rows(
            "SELECT t.engine, e.transactions FROM information_schema.tables t LEFT JOIN information_schema.engines e "
            "ON e.engine = t.engine WHERE t.table_schema = %s AND t.table_name = %s AND t.table_type = 'BASE TABLE'",
            (database, name),
        )
        if not found:
            raise CaptureStopped(f'table "{table}" does not exist', hint="check its name, its database and your rights")
        full = f"`{database}`.`{name}`"
        if found[0][1] != "YES":
            raise NotReady(
                f'table "{table}" is kept by {found[0][0]}, which has no transactions',
                f"ALTER TABLE {full} ENGINE = InnoDB",
            )
        keys = self.key_names(table)
        if not keys:
            raise NotReady(f'table "{table}" has no primary key', f"ALTER TABLE {full} ADD PRIMARY KEY (...)")
        columns = [column_of(each, type_, self.capture, key=each in keys) for each, type_ in self.types(table)]
        for column in columns:
            if column.key and column.type in ("float", "double"):
                raise CaptureStopped(f'the primary key of table "{table}" has the inexact type {column.type}')
        return Shape(database, name, tuple(columns))

    def types(self, table: str) -> list[tuple[str, MysqlType]]:
        found = self.rows(
            "SELECT column_name, data_type, column_type, character_maximum_length, numeric_precision, numeric_scale, "
            "datetime_precision, is_nullable FROM information_schema.columns WHERE table_schema = %s "
            "AND table_name = %s ORDER BY ordinal_position",
            table.split(".", 1),
        )
        return [(name, _catalog_type(table, name, *rest)) for name, *rest in found]

    def zero_filled(self, table: str) -> set[str]:
        """Return the columns whose numbers are printed with zeros in front."""
        query = (
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
            "AND column_type LIKE '%%zerofill%%'"
        )
        return {name for (name,) in self.rows(query, table.split(".", 1))}

    def charset(self, collation: int) -> tuple[str, int]:
        """Return the character set of a collation, and the most bytes of a character."""
        if self._charsets is None:
            query = (
                "SELECT a.id, c.character_set_name, c.maxlen FROM information_schema.collations a "
                "JOIN information_schema.character_sets c ON c.character_set_name = a.character_set_name"
            )
            if self.is_mariadb and self.rows(
                "SHOW COLUMNS FROM information_schema.collation_character_set_applicability LIKE 'id'"
            ):
                query = (
                    "SELECT a.id, c.character_set_name, c.maxlen FROM "
                    "information_schema.collation_character_set_applicability a "
                    "JOIN information_schema.character_sets c ON c.character_set_name = a.character_set_name"
                )
            self._charsets = {int(id_): (name, int(most)) for id_, name, most in self.rows(query) if id_ is not None}
        found = self._charsets.get(collation)
        if found is None:
            raise CaptureStopped(f"the server does not list the collation {collation}, which the binary log names")
        return found

    def estimated_rows(self, table: str) -> int:
        query = "SELECT table_rows FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
        found = self.rows(query, table.split(".", 1))
        return int(found[0][0] or 0) if found else 0


def _catalog_type(
    table: str,
    column: str,
    name: str,
    full: str,
    characters: int | None,
    precision: int | None,
    scale: int | None,
    seconds: int | None,
    nullable: str,
) -> MysqlType:
    name, lowered = name.lower(), full.lower()
    if "compressed" in lowered:
        raise CaptureStopped(f'column "{column}" of table "{table}" is COMPRESSED, which the capture cannot read')
    plain = MysqlType(name, "unsigned" in lowered, nullable=nullable == "YES")
    if name in _GEOMETRIES:
        return plain._replace(name="geometry")
    if name in ("enum", "set"):
        return plain._replace(labels=_labels(full), unsigned=False)
    if name == "decimal":
        return plain._replace(length=int(precision or 0), scale=int(scale or 0))
    if name == "bit":
        return plain._replace(length=int(precision or 1))
    if name in ("datetime", "timestamp", "time"):
        return plain._replace(scale=int(seconds or 0))
    if name in ("char", "varchar", "binary", "varbinary"):
        return plain._replace(length=int(characters or 0))
    known = (*TEXTS, *BYTES, *ADDRESSES, "tinyint", "smallint", "mediumint", "int", "bigint", "float", "double")
    if name not in (*known, "date", "year", "json", "geometry"):
        raise CaptureStopped(f'column "{column}" of table "{table}" has the type {name}, which cannot be captured')
    return plain


def _labels(full: str) -> tuple[str, ...]:
    """Return the labels in `enum('a','it''s')`."""
    return tuple(each.replace("''", "'") for each in re.findall(r"'((?:[^']|'')*)'", full))


def column_of(name: str, type_: MysqlType, capture: Capture, *, key: bool) -> Column:
    return Column(name, spelled(type_), kind_of(type_, capture.decimals, capture.times), key)


def sorted_gtids(text: str) -> str:
    """Return the GTIDs of MariaDB in the order of their domains."""
    return ",".join(sorted(filter(None, text.split(",")), key=lambda gtid: int(gtid.partition("-")[0])))

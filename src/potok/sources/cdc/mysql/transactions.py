"""Turn the events of the binary log into changes, and know the position behind them."""

from __future__ import annotations

from typing import Any

from pymysqlreplication.constants import BINLOG
from pymysqlreplication.event import (
    GtidEvent,
    HeartbeatLogEvent,
    MariadbGtidEvent,
    NotImplementedEvent,
    QueryEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
)
from pymysqlreplication.gtid import GtidSet
from pymysqlreplication.row_event import (
    PartialUpdateRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from potok.sources.cdc.envelopes.changes import CREATE, DELETE, TRUNCATE, UPDATE, Change
from potok.sources.cdc.errors import CaptureStopped, ChangesLost
from potok.sources.cdc.landing.landing import CapturePosition, Output
from potok.sources.cdc.landing.pending import Pending
from potok.sources.cdc.mysql.binlog import Logged
from potok.sources.cdc.mysql.positions import Place, VisibleLog, number_of, with_gtid
from potok.sources.cdc.mysql.rows import LoggedTable, table_of
from potok.sources.cdc.mysql.server import Server
from potok.sources.cdc.mysql.source import Origin
from potok.sources.cdc.mysql.statements import Statement, classify
from potok.topology.capture import Capture

_STANDALONE = 1
"""The flag of a MariaDB GTID whose group is one statement, without a commit behind it."""

_PREPARED, _DECIDED = 64, 128
"""The flags of a MariaDB GTID whose transaction is decided by another group, and of that group."""

_HARMLESS = (
    BINLOG.INTVAR_EVENT,
    BINLOG.RAND_EVENT,
    BINLOG.USER_VAR_EVENT,
    BINLOG.STOP_EVENT,
    BINLOG.IGNORABLE_LOG_EVENT,
    BINLOG.ROWS_QUERY_LOG_EVENT,
    BINLOG.ANONYMOUS_GTID_LOG_EVENT,
    BINLOG.PREVIOUS_GTIDS_LOG_EVENT,
    BINLOG.MARIADB_ANNOTATE_ROWS_EVENT,
    BINLOG.MARIADB_START_ENCRYPTION_EVENT,
)
_COMPRESSED = {40: "binlog_transaction_compression", **dict.fromkeys(range(165, 172), "log_bin_compress")}


class Transactions:
    """Takes the events of the binary log, one after the other."""

    def __init__(self, capture: Capture, server: Server, pending: Pending, position: CapturePosition) -> None:
        self._capture, self._server, self.pending = capture, server, pending
        stream = position.stream
        self._file, self._pos, self._gtids = stream["file"], stream["pos"], stream["gtid"]
        self._skipping = stream["done"]
        self._done = 0
        self._ended: tuple[int, int] | None = None
        self._gtid: str | None = None
        self._place: Place | None = None
        self._open = self._prepared = self._touched = False
        self._tables: dict[int, LoggedTable | None] = {}
        self._known: dict[str, LoggedTable] = {}
        self._statement: dict[str, str] = {}

    @property
    def seen(self) -> VisibleLog | None:
        """The end of the last transaction with changes of captured tables; None before the first of a session."""
        return None if self._ended is None else VisibleLog(self._ended, self._gtids)

    def ended_before(self, visible: VisibleLog, seen: VisibleLog | None) -> bool:
        """Return whether a transaction that was in the log when the window was opened is not in the chunk: the server
        sends it before other sessions see it, with semi-synchronous replication up to seconds before.
        """
        if seen is None:
            return False
        if visible.gtids is None:
            return visible.end < seen.end
        known = GtidSet(visible.gtids)
        return not all(each in known for each in GtidSet(seen.gtids or "").gtids)

    def has_passed(self, end: tuple[int, int]) -> bool:
        """Whether everything before a position was read, and no transaction is open."""
        return self._place is None and (number_of(self._file), self._pos) >= end

    def position(self, before: CapturePosition) -> CapturePosition:
        """Return the position behind everything that was read: a transaction that is open is read again, without the
        `done` events of rows that have landed.
        """
        done = max(self._done, self._skipping)
        return self.pending.position(before, {"file": self._file, "pos": self._pos, "gtid": self._gtids, "done": done})

    def take(self, logged: Logged) -> list[tuple[str, str]]:
        """Take an event; return the tables that it has truncated, with the statement."""
        event = logged.event
        if isinstance(event, TableMapEvent):
            self._map(event)
        elif isinstance(event, RowsEvent):
            self._rows(event, logged)
        elif isinstance(event, MariadbGtidEvent | GtidEvent):
            self._begin(event, logged)
        elif isinstance(event, XidEvent):
            self._end(logged)
        elif isinstance(event, QueryEvent):
            return self._query(event, logged)
        elif isinstance(event, RotateEvent):
            self._rotate(event, logged)
        else:
            self._other(event, logged)
        return []

    def truncated(self, table: str, logged: Logged) -> list[Output]:
        """Return the records of a truncate, and go behind it."""
        known = self._known.get(table)
        shape = self._server.shape(table) if known is None else known.shape
        place = self._place or Place(number_of(logged.file), logged.begin, self._gtid)
        change = Change(TRUNCATE, None, None, False, logged.event.timestamp * 1000, self._origin(logged, 0))
        return self.pending.truncated(shape, change, place)

    def end(self, logged: Logged) -> None:
        """Go behind a statement that is a transaction of its own."""
        self._end(logged)

    def _begin(self, event: MariadbGtidEvent | GtidEvent, logged: Logged) -> None:
        self._gtid = event.gtid
        self._place = Place(number_of(logged.file), logged.begin, event.gtid)
        self._done = 0
        if isinstance(event, MariadbGtidEvent):
            self._open = not event.flags & (_STANDALONE | _DECIDED)
            self._prepared = bool(event.flags & _PREPARED)

    def _end(self, logged: Logged) -> None:
        if self._gtid is not None:
            self._gtids = with_gtid(self._gtids, self._gtid, is_mariadb=self._server.is_mariadb)
        if self._touched:
            self._ended = number_of(logged.file), logged.end
        self._place = self._gtid = None
        self._done = self._skipping = 0
        self._open = self._prepared = self._touched = False
        self._pos = logged.end

    def _map(self, event: TableMapEvent) -> None:
        name = f"{event.schema}.{event.table}"
        if name not in self._capture.tables:
            self._tables[event.table_id] = None
            return
        if self._tables.get(event.table_id) is not None:
            return
        catalog = dict(self._server.types(name)) if self._server.is_mariadb else {}
        table = table_of(event, self._server, catalog)
        known = self._known.get(name)
        if known is not None and known.shape.described() == table.shape.described():
            table = LoggedTable(known.shape, table.layouts)
        else:
            self.pending.note_columns(table.shape, self._statement.pop(name, None))
        if not table.shape.key_indexes:
            raise ChangesLost(self._capture.name, f'table "{name}" has no primary key any more')
        self._known[name] = self._tables[event.table_id] = table

    def _rows(self, event: Any, logged: Logged) -> None:
        self._done += 1
        table = self._tables.get(event.table_id)
        if table is None or self._done <= self._skipping:
            return
        self._touched = True
        place = self._place
        if place is None:
            raise CaptureStopped(f"rows of table {table.shape.name} are in no transaction at {_where(logged)}")
        if self._prepared:
            raise ChangesLost(
                self._capture.name,
                f"an XA transaction has changed table {table.shape.name}; whether it was committed is decided later",
            )
        self._check_whole(event, table)
        rows, shape = table.rows(logged.body), table.shape
        commit_ms = event.timestamp * 1000
        size = len(logged.body) // max(1, len(rows))
        add = self.pending.add
        if isinstance(event, UpdateRowsEvent):
            pairs = zip(rows[::2], rows[1::2], strict=True)
            for number, (before, after) in enumerate(pairs):
                add(shape, Change(UPDATE, before, after, False, commit_ms, self._origin(logged, number)), size, place)
            return
        is_create = isinstance(event, WriteRowsEvent)
        for number, row in enumerate(rows):
            origin = self._origin(logged, number)
            if is_create:
                change = Change(CREATE, None, row, False, commit_ms, origin)
            else:
                change = Change(DELETE, row, None, False, commit_ms, origin)
            add(shape, change, size, place)

    def _check_whole(self, event: Any, table: LoggedTable) -> None:
        count = len(table.layouts)
        bitmaps = [event.columns_present_bitmap]
        bitmaps += [event.columns_present_bitmap2] if isinstance(event, UpdateRowsEvent) else []
        whole = all(int.from_bytes(each, "little") & ((1 << count) - 1) == (1 << count) - 1 for each in bitmaps)
        if isinstance(event, PartialUpdateRowsEvent) or not whole or event.number_of_columns != count:
            raise ChangesLost(
                self._capture.name,
                f"a session has changed table {table.shape.name} with binlog_row_image or binlog_row_value_options "
                "of its own: the log does not have whole rows",
            )

    def _query(self, event: QueryEvent, logged: Logged) -> list[tuple[str, str]]:
        database = event.schema.decode() if isinstance(event.schema, bytes) else event.schema
        found = classify(event.query, database, self._capture.tables)
        if found.effect == "begin":
            self._place = self._place or Place(number_of(logged.file), logged.begin, self._gtid)
            self._open = True
            return []
        if found.effect == "truncate":
            return [(table, event.query) for table in found.tables]
        if found.effect == "rollback":
            if self._touched:
                raise ChangesLost(self._capture.name, f"a transaction was rolled back at {_where(logged)}")
        elif found.effect not in ("commit", "nothing"):
            self._refuse(found, event.query)
        if found.effect in ("commit", "rollback") or not self._open:
            self._end(logged)
        return []

    def _refuse(self, found: Statement, query: str) -> None:
        rendered = query if len(query) < 200 else f"{query[:200]}..."
        tables = ", ".join(found.tables)
        if found.effect == "alters":
            for table in found.tables:
                self._statement[table] = "; ".join(filter(None, (self._statement.get(table), query)))
            return
        if found.effect == "writes rows":
            raise ChangesLost(
                self._capture.name,
                f"table {tables} was changed by a statement, without its rows in the log: {rendered}",
            )
        raise ChangesLost(self._capture.name, f"rows of table {tables} are gone without a trace in the log: {rendered}")

    def _rotate(self, event: RotateEvent, logged: Logged) -> None:
        if event.next_binlog == self._file and event.timestamp == 0:
            return
        if self._place is not None:
            raise ChangesLost(self._capture.name, f"the log file {self._file} ends within a transaction")
        self._file, self._pos = event.next_binlog, event.position
        # Numbers of tables begin again after a restart.
        self._tables = {}

    def _other(self, event: Any, logged: Logged) -> None:
        if isinstance(event, XAPrepareEvent):
            if self._touched and not event.one_phase:
                raise ChangesLost(self._capture.name, f"an XA transaction was prepared at {_where(logged)}")
            self._end(logged)
            return
        if isinstance(event, NotImplementedEvent) and event.event_type not in _HARMLESS:
            if event.event_type in _COMPRESSED:
                setting = _COMPRESSED[event.event_type]
                raise ChangesLost(self._capture.name, f"the log is compressed; run: SET GLOBAL {setting} = OFF")
            raise CaptureStopped(f"the log has an event of unknown type {event.event_type} at {_where(logged)}")
        if self._place is None and logged.end > self._pos and self._is_here(event, logged):
            self._pos = logged.end

    def _is_here(self, event: Any, logged: Logged) -> bool:
        file: str = event.ident if isinstance(event, HeartbeatLogEvent) else logged.file
        return bool(file == self._file)

    def _origin(self, logged: Logged, row: int) -> Origin:
        return Origin(logged.event.packet.server_id, self._gtid, logged.file, logged.begin, row)


def _where(logged: Logged) -> str:
    return f"{logged.file}:{logged.begin}"

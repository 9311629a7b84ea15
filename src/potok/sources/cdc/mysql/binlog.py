"""Read the binary log over a connection of its own, in a thread."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, NamedTuple

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import (
    BinLogEvent,
    FormatDescriptionEvent,
    GtidEvent,
    HeartbeatLogEvent,
    MariadbBinLogCheckPointEvent,
    MariadbGtidEvent,
    MariadbGtidListEvent,
    NotImplementedEvent,
    QueryEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
)
from pymysqlreplication.exceptions import MalformedBinLogEvent, StatusVariableMismatch
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from potok.sources.cdc.errors import CaptureStopped, ChangesLost
from potok.sources.cdc.mysql.server import DatabaseUnreachable, answered, settings_of
from potok.topology.capture import Capture

HEARTBEAT_S = 1.0
_SILENT_S = 30.0
"""A connection on which nothing arrives for so long, not even heartbeats, is lost."""

_MOST_EVENTS = 512
_HEADER = 19
_CANNOT_SEND = 1236
_EVENTS = (
    FormatDescriptionEvent,
    GtidEvent,
    HeartbeatLogEvent,
    MariadbBinLogCheckPointEvent,
    MariadbGtidEvent,
    MariadbGtidListEvent,
    NotImplementedEvent,
    QueryEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)


class Logged(NamedTuple):
    """An event of the binary log, and where it is."""

    event: Any
    file: str
    begin: int
    end: int
    """Where the next event begins; 0 if the server has made the event for this connection."""
    body: bytes
    """The rows of an event that has some."""


class Binlog:
    """The events behind a position. Iterating stops while there is nothing to read."""

    def __init__(self, capture: Capture, file: str, pos: int, server_id: int) -> None:
        self._capture = capture
        self._queue: Queue[Logged | BaseException] = Queue(_MOST_EVENTS)
        self._stopping = Event()
        self._connections = 0
        self._reader = BinLogStreamReader(
            settings_of(capture.url, read_s=_SILENT_S),
            server_id=server_id,
            blocking=True,
            resume_stream=True,
            log_file=file,
            log_pos=pos,
            only_events=_EVENTS,
            filter_non_implemented_events=False,
            pymysql_wrapper=self._connect,
            slave_heartbeat=HEARTBEAT_S,
            # A table whose columns have changed has another number, so each number is parsed once.
            freeze_schema=True,
            enable_logging=False,
        )
        self._thread = Thread(target=self._run, name=f"potok-cdc-binlog-{capture.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop reading; the next heartbeat ends the thread."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_SILENT_S)

    def take(self, seconds: float) -> Iterator[Logged]:
        """Yield events as long as there are some, after waiting for the first."""
        try:
            found = self._queue.get(timeout=seconds)
            while True:
                if isinstance(found, BaseException):
                    raise found
                yield found
                found = self._queue.get_nowait()
        except Empty:
            return

    def _connect(self, **settings: Any) -> Any:
        """Connect once for the stream and once for its control; the library would also reconnect by itself."""
        self._connections += 1
        if self._connections > 2:
            raise DatabaseUnreachable(self._capture.url, "the server has ended the stream")
        return pymysql.connect(**settings)

    def _run(self) -> None:
        try:
            try:
                with answered(self._capture.url):
                    while not self._stopping.is_set() and self._forward():
                        pass
            except DatabaseUnreachable as error:
                if str(_CANNOT_SEND) in str(error.__context__):
                    raise ChangesLost(self._capture.name, f"the server cannot send its log: {error}") from error
                raise
            except (MalformedBinLogEvent, StatusVariableMismatch, struct.error, ValueError) as error:
                raise CaptureStopped(f"an event of the binary log cannot be read: {error}") from error
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that takes the events
            self._put(error)
        finally:
            self._reader.close()

    def _forward(self) -> bool:
        """Hand on the next event; return whether there was one."""
        reader = self._reader
        event: BinLogEvent | None = reader.fetchone()
        if event is None:
            raise DatabaseUnreachable(self._capture.url, "the server has ended the stream")
        if isinstance(event, RotateEvent):
            # Numbers of tables begin again after a restart; the library does not see one after a crash.
            reader.table_map = {}
        packet = event.packet
        body = b""
        if isinstance(event, RowsEvent) and not isinstance(event, TableMapEvent):
            checksum = packet.event_size - _HEADER - event.event_size
            body = packet.read_all()
            body = body[: len(body) - checksum]
        end = packet.log_pos
        return self._put(Logged(event, reader.log_file, end - packet.event_size, end, body))

    def _put(self, found: Logged | BaseException) -> bool:
        while not self._stopping.is_set():
            try:
                self._queue.put(found, timeout=HEARTBEAT_S)
            except Full:
                continue
            return True
        return False

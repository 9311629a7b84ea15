"""Follow the changes of a PostgreSQL database, from one connection to its loss."""

from __future__ import annotations

import select
import time
from threading import Event
from typing import Any

from potok.clock import now_ms
from potok.log.broker import Broker
from potok.sources.cdc.envelope import Envelopes, Source
from potok.sources.cdc.landing import CapturePosition, Landing
from potok.sources.cdc.postgres.chunks import CHUNK_PREFIX
from potok.sources.cdc.postgres.pgoutput import LogicalMessage, decode
from potok.sources.cdc.postgres.server import Server, answered, connect, identity_of, lsn_text
from potok.sources.cdc.postgres.snapshots import Snapshots
from potok.sources.cdc.postgres.start import start
from potok.sources.cdc.postgres.transactions import Transactions
from potok.sources.cdc.progress import Progress
from potok.sources.cdc.topics import Topics
from potok.topology.capture import Capture

CONNECTOR = "postgresql"
HEARTBEAT_PREFIX = "potok.heartbeat"
_LOOK_S = 0.1
_STORE_S = 1.0
"""How often a position is stored behind which nothing has landed."""
_MEASURE_S = 5.0
_RETAINED = """
SELECT pg_wal_lsn_diff(here, '0/0')::bigint, pg_wal_lsn_diff(here, restart_lsn)::bigint
FROM pg_replication_slots, LATERAL (
  SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END
) AS at(here)
WHERE slot_name = %s
"""


class PostgresSession:
    """One connection to the stream of changes, and what lands from it."""

    def __init__(self, capture: Capture, broker: Broker, landing: Landing, progress: Progress) -> None:
        self._capture, self._landing, self._progress = capture, landing, progress
        self._topics = Topics(broker, capture, CONNECTOR)
        self._server = Server(capture)
        self._replication = connect(capture.url, replication=True)
        self._position = start(capture, self._server, identity_of(self._replication), landing, self._topics)
        [(database,)] = self._server.rows("SELECT current_database()")
        envelopes = Envelopes(Source(CONNECTOR, capture.name, database), capture.with_schema, capture.tombstones)
        self._transactions = Transactions(capture, self._server, envelopes, self._topics, self._position)
        self._snapshots = Snapshots(capture, self._server, envelopes, self._position, progress)
        self._cursor: Any = self._replication.cursor()
        self._beat_at = self._stored_at = time.monotonic()
        self._measured_at = 0.0

    def run(self, stopping: Event) -> None:
        """Follow the stream until `stopping` is set or something fails."""
        options = {
            "proto_version": "1",
            "publication_names": '"' + self._capture.publication.replace('"', '""') + '"',
            "messages": "true",
        }
        with answered(self._capture.url):
            self._cursor.start_replication(
                slot_name=self._capture.slot,
                start_lsn=lsn_text(self._position.stream["lsn"]),
                options=options,
                decode=False,
                status_interval=1,
            )
        self._progress.update(state="snapshot" if self._snapshots.table else "streaming", problem=None)
        self._snapshots.request_next(self._transactions)
        read = self._cursor.read_message
        with answered(self._capture.url):
            while not stopping.is_set():
                message = read()
                if message is not None:
                    self._take(message)
                    continue
                self._land()
                self._progress.caught_up()
                self._idle()
                select.select([self._cursor], [], [], _LOOK_S)
        self._land()

    def close(self) -> None:
        self._snapshots.close()
        for connection in (self._replication, self._server):
            connection.close()

    def _take(self, message: Any) -> None:
        data = message.payload
        kind = data[:1]
        transactions = self._transactions
        if kind in (b"I", b"U", b"D"):
            transactions.change(decode(data), message.data_start, len(data))
            if transactions.is_full:
                self._land()
            return
        decoded = decode(data)
        if isinstance(decoded, LogicalMessage):
            if decoded.prefix == CHUNK_PREFIX:
                self._snapshots.reached(decoded.content.decode())
            return
        if kind == b"T":
            self._land()
            outputs = transactions.truncate(decoded, message.data_start)
            self._store(self._landing.land(outputs, transactions.position(self._position)))
            return
        transactions.control(decoded)
        if kind == b"C" and self._snapshots.is_ready:
            self._land_chunk()

    def _land(self) -> None:
        """Land what is pending, with the position behind it."""
        transactions = self._transactions
        if transactions.pending:
            count = transactions.pending
            position = transactions.position(self._position)
            self._store(self._landing.land(transactions.take(), position))
            self._progress.add_changes(count)

    def _land_chunk(self) -> None:
        """Land the rows of a chunk behind all changes that it has seen, and ask for the next."""
        self._progress.add_changes(self._transactions.pending)
        merged = self._snapshots.merge(self._transactions, self._position)
        outputs = self._transactions.take()
        if merged is not None:
            outputs += merged.outputs
            position = self._transactions.position(self._position).with_table(merged.table, merged.progress)
            self._store(self._landing.land(outputs, position))
        elif outputs:
            self._store(self._landing.land(outputs, self._transactions.position(self._position)))
        self._snapshots.landed(self._position)
        self._snapshots.request_next(self._transactions)
        if not self._snapshots.table:
            self._progress.update(state="streaming")

    def _store(self, position: CapturePosition) -> None:
        """Note what is durable, and let the server remove its log before that."""
        self._snapshots.check()
        self._position = position
        self._stored_at = time.monotonic()
        self._measure(self._stored_at)
        lsn = position.stream["lsn"]
        with answered(self._capture.url):
            self._cursor.send_feedback(write_lsn=lsn, flush_lsn=lsn, apply_lsn=lsn)

    def _idle(self) -> None:
        """Do what is due while there is nothing to read."""
        self._snapshots.check()
        now = time.monotonic()
        self._measure(now)
        position = self._transactions.position(self._position)
        if position.stream != self._position.stream and now - self._stored_at > _STORE_S:
            self._landing.store(position)
            self._store(position)
        if self._capture.heartbeat_s and now - self._beat_at > self._capture.heartbeat_s:
            self._beat_at = now
            self._server.emit(HEARTBEAT_PREFIX, str(now_ms()))

    def _measure(self, now: float) -> None:
        """Ask the server now and then how far its log is ahead, and how much of it the slot retains."""
        if now - self._measured_at < _MEASURE_S:
            return
        self._measured_at = now
        for end, retained in self._server.rows(_RETAINED, [self._capture.slot]):
            ahead = max(0, int(end) - self._position.stream["lsn"])
            self._progress.update(lag_bytes=ahead, retained_bytes=int(retained or 0))

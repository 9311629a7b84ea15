"""Follow the changes of a PostgreSQL database, from one connection to its loss."""

from __future__ import annotations

import select
import time
from threading import Event
from typing import Any

from potok.clock import now_ms
from potok.log.broker import Broker
from potok.records.garbage_collection import collector_paused
from potok.sources.cdc.envelopes.envelope import Envelopes
from potok.sources.cdc.landing.follower import Follower
from potok.sources.cdc.landing.landing import CapturePosition, Landing
from potok.sources.cdc.landing.pending import Pending
from potok.sources.cdc.landing.snapshots import Snapshots
from potok.sources.cdc.landing.topics import Topics
from potok.sources.cdc.postgres.chunks import CHUNK_PREFIX, PostgresChunks
from potok.sources.cdc.postgres.pgoutput import LogicalMessage, decode
from potok.sources.cdc.postgres.server import Server, answered, connect, identity_of, lsn_text
from potok.sources.cdc.postgres.source import CONNECTOR, PostgresSource
from potok.sources.cdc.postgres.start import start
from potok.sources.cdc.postgres.transactions import Transactions
from potok.sources.cdc.progress import Progress
from potok.topology.capture import Capture

HEARTBEAT_PREFIX = "potok.heartbeat"
_LOOK_S = 0.1
_AT_A_TIME = 20_000
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
        self._capture, self._progress = capture, progress
        topics = Topics(broker, capture, CONNECTOR)
        self._server = Server(capture)
        self._replication = connect(capture.url, replication=True)
        position = start(capture, self._server, identity_of(self._replication), landing, topics)
        [(database,)] = self._server.rows("SELECT current_database()")
        envelopes = Envelopes(PostgresSource(capture.name, database), capture.with_schema, capture.tombstones)
        self._transactions = Transactions(
            capture, self._server, Pending(capture, envelopes, topics, position), position
        )
        totals = {name: self._server.estimated_rows(name) for name, each in position.tables.items() if not each.done}
        self._snapshots = Snapshots(capture, lambda: PostgresChunks(capture), totals, envelopes, position, progress)
        self._follower = Follower(landing, self._transactions, self._snapshots, position, progress, self._stored)
        self._cursor: Any = self._replication.cursor()
        self._beat_at = time.monotonic()
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
                start_lsn=lsn_text(self._follower.position.stream["lsn"]),
                options=options,
                decode=False,
                status_interval=1,
            )
        self._follower.begin()
        with answered(self._capture.url):
            while not stopping.is_set():
                with collector_paused():
                    there_is_more = self._take_some()
                if there_is_more:
                    continue
                self._follower.idle()
                self._measure()
                self._beat()
                select.select([self._cursor], [], [], _LOOK_S)
        self._follower.land()

    def close(self) -> None:
        self._snapshots.close()
        for connection in (self._replication, self._server):
            connection.close()

    def _take_some(self) -> bool:
        """Take messages as long as there are some, and not too many at a time; return whether there may be more."""
        read = self._cursor.read_message
        for _ in range(_AT_A_TIME):
            message = read()
            if message is None:
                return False
            self._take(message)
        return True

    def _take(self, message: Any) -> None:
        data = message.payload
        kind = data[:1]
        transactions = self._transactions
        if kind in (b"I", b"U", b"D"):
            transactions.change(decode(data), message.data_start, len(data))
            if transactions.pending.is_full:
                self._follower.land()
            return
        decoded = decode(data)
        if isinstance(decoded, LogicalMessage):
            if decoded.prefix == CHUNK_PREFIX:
                self._snapshots.reached(decoded.content.decode())
            return
        if kind == b"T":
            self._follower.land()
            self._follower.land_outputs(transactions.truncate(decoded, message.data_start))
            return
        transactions.control(decoded)
        if kind == b"C" and self._snapshots.is_announced:
            self._follower.land_chunk()

    def _stored(self, position: CapturePosition) -> None:
        """Let the server remove its log before what is durable."""
        self._measure()
        lsn = position.stream["lsn"]
        with answered(self._capture.url):
            self._cursor.send_feedback(write_lsn=lsn, flush_lsn=lsn, apply_lsn=lsn)

    def _beat(self) -> None:
        """Write into the stream now and then, so that the slot advances while the tables are quiet."""
        now = time.monotonic()
        if self._capture.heartbeat_s and now - self._beat_at > self._capture.heartbeat_s:
            self._beat_at = now
            self._server.emit(HEARTBEAT_PREFIX, str(now_ms()))

    def _measure(self) -> None:
        """Ask the server now and then how far its log is ahead, and how much of it the slot retains."""
        now = time.monotonic()
        if now - self._measured_at < _MEASURE_S:
            return
        self._measured_at = now
        for end, retained in self._server.rows(_RETAINED, [self._capture.slot]):
            ahead = max(0, int(end) - self._follower.position.stream["lsn"])
            self._progress.update(lag_bytes=ahead, retained_bytes=int(retained or 0))

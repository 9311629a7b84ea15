"""Follow the changes of a MariaDB or MySQL database, from one connection to its loss."""

from __future__ import annotations

import time
from itertools import islice
from threading import Event

from potok.log.broker import Broker
from potok.records.garbage_collection import collector_paused
from potok.sources.cdc.envelopes.envelope import Envelopes
from potok.sources.cdc.landing.follower import Follower
from potok.sources.cdc.landing.landing import CapturePosition, Landing
from potok.sources.cdc.landing.pending import Pending
from potok.sources.cdc.landing.snapshots import Snapshots
from potok.sources.cdc.landing.topics import Topics
from potok.sources.cdc.mysql.binlog import Binlog, Logged
from potok.sources.cdc.mysql.chunks import MysqlChunks
from potok.sources.cdc.mysql.positions import number_of
from potok.sources.cdc.mysql.server import Server
from potok.sources.cdc.mysql.source import MysqlSource
from potok.sources.cdc.mysql.start import server_id_of, start
from potok.sources.cdc.mysql.transactions import Transactions
from potok.sources.cdc.progress import Progress
from potok.topology.capture import Capture

_LOOK_S = 0.1
_AT_A_TIME = 1_000
_MEASURE_S = 5.0


class MysqlSession:
    """One connection to the binary log, and what lands from it."""

    def __init__(self, capture: Capture, broker: Broker, landing: Landing, progress: Progress) -> None:
        self._capture, self._progress = capture, progress
        self._server = Server(capture)
        topics = Topics(broker, capture, self._server.kind)
        position = start(capture, self._server, landing, topics)
        envelopes = Envelopes(MysqlSource(capture.name, self._server.kind), capture.with_schema, capture.tombstones)
        self._transactions = Transactions(
            capture, self._server, Pending(capture, envelopes, topics, position), position
        )
        totals = {name: self._server.estimated_rows(name) for name, each in position.tables.items() if not each.done}
        self._snapshots = Snapshots(capture, lambda: MysqlChunks(capture), totals, envelopes, position, progress)
        self._follower = Follower(landing, self._transactions, self._snapshots, position, progress, self._stored)
        self._measured_at = 0.0
        stream = position.stream
        self._log = Binlog(capture, stream["file"], stream["pos"], server_id_of(capture))

    def run(self, stopping: Event) -> None:
        """Follow the log until `stopping` is set or something fails."""
        self._follower.begin()
        self._log.start()
        while not stopping.is_set():
            with collector_paused():
                taken = self._take_some()
            if taken < _AT_A_TIME:
                self._follower.idle()
                self._measure()
                self._land_chunk()
        self._follower.land()

    def close(self) -> None:
        self._snapshots.close()
        self._log.close()
        self._server.close()

    def _take_some(self) -> int:
        """Take events as long as there are some, and not too many at a time; return how many."""
        taken = 0
        for logged in islice(self._log.take(_LOOK_S), _AT_A_TIME):
            self._take(logged)
            taken += 1
        return taken

    def _take(self, logged: Logged) -> None:
        truncated = self._transactions.take(logged)
        if truncated:
            self._follower.land()
            outputs = [output for table, _ in truncated for output in self._transactions.truncated(table, logged)]
            self._transactions.end(logged)
            self._follower.land_outputs(outputs)
        elif self._transactions.pending.is_full:
            self._follower.land()
        self._land_chunk()

    def _land_chunk(self) -> None:
        chunk = self._snapshots.chunk
        if chunk is not None and self._transactions.has_passed(chunk.visible.end):
            self._follower.land_chunk()

    def _stored(self, position: CapturePosition) -> None:
        """The server keeps nothing for a capture: how long its log stays is a setting of its own."""
        self._measure()

    def _measure(self) -> None:
        """Ask the server now and then how far its log is ahead."""
        now = time.monotonic()
        if now - self._measured_at < _MEASURE_S:
            return
        self._measured_at = now
        stream = self._follower.position.stream
        here = number_of(stream["file"])
        ahead = sum(size for file, size in self._server.log_files().items() if number_of(file) >= here)
        self._progress.update(lag_bytes=max(0, ahead - stream["pos"]))

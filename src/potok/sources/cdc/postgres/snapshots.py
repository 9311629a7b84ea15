"""Take the snapshots of tables, chunk by chunk, between the changes that are streamed."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import NamedTuple

from potok.log.failpoint import failpoint
from potok.sources.cdc.envelope import Envelopes, snapshot_records
from potok.sources.cdc.landing import CapturePosition, Output, TableProgress
from potok.sources.cdc.postgres.chunks import ChunkReader, ChunkRequest
from potok.sources.cdc.postgres.server import Server
from potok.sources.cdc.postgres.transactions import Transactions
from potok.sources.cdc.postgres.window import TryAgain
from potok.sources.cdc.progress import Progress, SnapshotStatus
from potok.topology.capture import Capture


class Merged(NamedTuple):
    """A chunk as records, and the progress of its table behind it."""

    outputs: list[Output]
    table: str
    progress: TableProgress


class Snapshots:
    """Which table is read at present, and which chunk is under way."""

    def __init__(
        self, capture: Capture, server: Server, envelopes: Envelopes, position: CapturePosition, progress: Progress
    ) -> None:
        self._capture, self._server, self._envelopes, self._progress = capture, server, envelopes, progress
        self._session = uuid.uuid4().hex
        self._reader: ChunkReader | None = None
        self._request: ChunkRequest | None = None
        self._number = self._seen_at_request = 0
        self._tables = {name: each for name, each in position.tables.items() if not each.done}
        self._totals = {name: server.estimated_rows(name) for name in self._tables}
        self.is_ready = False
        for name, each in position.tables.items():
            self._report(name, each)

    @property
    def table(self) -> str | None:
        """The table that is read; None once all are."""
        return next(iter(self._tables), None)

    def request_next(self, transactions: Transactions) -> None:
        """Ask for the next chunk, and note from here on what is streamed for its table."""
        table = self.table
        if table is None:
            return
        if self._reader is None:
            self._reader = ChunkReader(self._capture)
        self._number += 1
        self._seen_at_request = transactions.seen
        transactions.open_window(table)
        self._request = ChunkRequest(f"{self._session}:{self._number}", table, self._tables[table].after)
        failpoint("cdc.chunk.requested")
        self._reader.request(self._request)

    def reached(self, identifier: str) -> None:
        """Note that the stream has reached the message behind a chunk; those of earlier sessions mean nothing."""
        self.is_ready = self._request is not None and self._request.id == identifier

    def merge(self, transactions: Transactions, position: CapturePosition) -> Merged | None:
        """Return the rows of the chunk that are still current; None if it has to be read again."""
        self.is_ready = False
        assert self._reader is not None
        assert self._reader.chunk is not None
        chunk, table = self._reader.chunk, self.table
        assert table is not None
        window = transactions.windows[table]
        transactions.close_window(table)
        # A transaction is in the stream a moment before others see it. Its changes may have been streamed before the
        # window was opened.
        if any(transactions.was_streamed_before(xid, self._seen_at_request) for xid in chunk.visible.running):
            return None
        try:
            merged = window.merge(chunk)
        except TryAgain:
            return None
        transactions.note_columns(chunk.shape)
        lsn = transactions.position(position).stream["lsn"]
        records = snapshot_records(self._envelopes, merged.shape, merged.columns, lsn, chunk.read_ms)
        before = transactions.position(position).tables[table]
        after = before.after if chunk.after is None else chunk.after
        progress = replace(before, after=after, rows=before.rows + chunk.rows, done=chunk.last)
        return Merged([Output(self._capture.topic(table), records)] if merged.rows else [], table, progress)

    def landed(self, position: CapturePosition) -> None:
        """Note how far the tables are."""
        for name in list(self._tables):
            self._tables[name] = position.tables[name]
            self._report(name, position.tables[name])
            if position.tables[name].done:
                del self._tables[name]
        if not self._tables:
            self.close()

    def check(self) -> None:
        """Raise what the reading thread has raised."""
        if self._reader is not None and self._reader.failure is not None:
            raise self._reader.failure

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _report(self, name: str, each: TableProgress) -> None:
        total = each.rows if each.done else max(self._totals.get(name, 0), each.rows)
        self._progress.snapshot(name, SnapshotStatus(each.rows, total, each.done))

"""Take the snapshots of tables, chunk by chunk, between the changes that are streamed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from potok.log.failpoint import failpoint
from potok.sources.cdc.envelopes.envelope import Envelopes, snapshot_records
from potok.sources.cdc.landing.chunks import Chunk, ChunkReader, ChunkRequest, ChunkSource
from potok.sources.cdc.landing.landing import CapturePosition, Output, TableProgress
from potok.sources.cdc.landing.pending import Pending
from potok.sources.cdc.landing.window import TryAgain
from potok.sources.cdc.progress import Progress, SnapshotStatus
from potok.topology.capture import Capture


class Transactions(Protocol):
    """The transactions of one stream, as they are read."""

    pending: Pending

    @property
    def seen(self) -> Any:
        """Which have ended, in a form of their own."""
        ...

    def position(self, before: CapturePosition) -> CapturePosition:
        """Return the position behind everything that was read."""
        ...

    def ended_before(self, visible: Any, seen: Any) -> bool:
        """Whether a transaction that a chunk has not seen was among those in `seen`, which no window has noted."""
        ...


class Merged(NamedTuple):
    """A chunk as records, and the progress of its table behind it."""

    outputs: list[Output]
    table: str
    progress: TableProgress


class Snapshots:
    """Which table is read at present, and which chunk is under way."""

    def __init__(
        self,
        capture: Capture,
        source: Callable[[], ChunkSource],
        totals: Mapping[str, int],
        envelopes: Envelopes,
        position: CapturePosition,
        progress: Progress,
    ) -> None:
        self._capture, self._source, self._totals = capture, source, totals
        self._envelopes, self._progress = envelopes, progress
        self._session = uuid.uuid4().hex
        self._reader: ChunkReader | None = None
        self._request: ChunkRequest | None = None
        self._number = 0
        self._seen_at_request: Any = None
        self._tables = {name: each for name, each in position.tables.items() if not each.done}
        self._announced = False
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
            self._reader = ChunkReader(self._capture.name, self._source())
        self._number += 1
        self._seen_at_request = transactions.seen
        transactions.pending.open_window(table)
        self._announced = False
        known = self._tables[table]
        self._request = ChunkRequest(f"{self._session}:{self._number}", table, known.after, known.until)
        failpoint("cdc.chunk.requested")
        self._reader.request(self._request)

    @property
    def chunk(self) -> Chunk | None:
        """The chunk that was read and has not landed."""
        return None if self._reader is None else self._reader.chunk

    @property
    def is_announced(self) -> bool:
        """Whether the stream has reached the message behind the chunk."""
        return self._announced

    def reached(self, identifier: str) -> None:
        """Note that the stream has reached the message behind a chunk; those of earlier sessions mean nothing."""
        self._announced = self._request is not None and self._request.id == identifier

    def merge(self, transactions: Transactions, position: CapturePosition) -> Merged | None:
        """Return the rows of the chunk that are still current; None if it has to be read again."""
        assert self._reader is not None
        assert self._reader.chunk is not None
        chunk, table = self._reader.chunk, self.table
        assert table is not None
        self._announced, self._reader.chunk = False, None
        window = transactions.pending.close_window(table)
        # A transaction may be in the stream a moment before others see it, so before the window was opened.
        if transactions.ended_before(chunk.visible, self._seen_at_request):
            return None
        try:
            merged = window.merge(chunk)
        except TryAgain:
            return None
        transactions.pending.note_first_columns(chunk.shape)
        stream = transactions.position(position).stream
        records = snapshot_records(self._envelopes, merged.shape, merged.columns, stream, chunk.read_ms)
        before = transactions.position(position).tables[table]
        after = before.after if chunk.after is None else chunk.after
        progress = replace(before, after=after, until=chunk.until, rows=before.rows + chunk.rows, done=chunk.last)
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

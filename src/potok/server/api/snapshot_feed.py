"""Changes of a table without a changelog topic: the differences between its committed batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from potok.server.api.feeds import Event
from potok.server.errors import BadRequest
from potok.server.ksql.json_rows import dump
from potok.server.tables.table_reads import EVERY, Keys, TableReads
from potok.snapshots.ledger_view import read_entry
from potok.sql.catalog import Source
from potok.statements.database import Database

LOOK_S = 0.2
"""How often the last committed batch is checked."""

SHARE = 10
"""Reading the rows of a table takes at most one tenth of the time."""

_BOUNDS = ("WINDOWSTART", "WINDOWEND")


class SnapshotFeed:
    """Events of one table for one client; the id of an event is the batch of its snapshot.

    A client that reconnects with the id of an older batch gets a `gap` and then all rows, because the changes in
    between are not known.
    """

    look_s = LOOK_S

    def __init__(self, database: Database, source: Source, reads: TableReads, last_id: str | None, begin: str) -> None:
        if begin not in ("now", "beginning"):
            raise BadRequest(f'a feed cannot start at "{begin}"', hint="write from=now or from=beginning")
        if last_id and not last_id.isdecimal():
            raise BadRequest(
                f'"{last_id}" is not an event id of this feed', hint="send the id of the last event unchanged"
            )
        self._database, self._source, self._reads = database, source, reads
        self._keys = [*(column.name for column in source.keys), *(_BOUNDS if source.window is not None else ())]
        self._closed = False
        self._wait_until = 0.0
        self._gap: list[Event] = []
        self._batch, self._rows = self._read()
        if last_id and int(last_id) != self._batch:
            self._gap = [Event(last_id, dump({"from": int(last_id), "to": self._batch}), "gap")]
        if self._gap or (begin == "beginning" and not last_id):
            self._batch, self._rows = -1, {}
        self.wake: Callable[[], None] | None = None

    @property
    def subscription(self) -> SnapshotFeed:
        """Set the function that wakes the reader."""
        return self

    def take(self) -> list[Event] | None:
        """Return the changes since the last call; None at the end."""
        if self._closed:
            return None
        if self._gap:
            gap, self._gap = self._gap, []
            return gap
        if time.monotonic() < self._wait_until or self._committed() == self._batch:
            return []
        before = self._rows
        self._batch, self._rows = self._read()
        changed = [(key, row) for key, row in self._rows.items() if before.get(key) != row]
        gone = [(key, None) for key in before if key not in self._rows]
        return [self._event(key, row, before.get(key)) for key, row in (*changed, *gone)]

    def close(self) -> None:
        self._closed = True
        if self.wake is not None:
            self.wake()

    def _event(self, key: bytes, row: dict[str, Any] | None, before: dict[str, Any] | None) -> Event:
        shown = row or before or {}
        data = {"batch": self._batch, "key": {name: shown[name] for name in self._keys}, "row": row}
        return Event(str(self._batch), dump(data))

    def _read(self) -> tuple[int, dict[bytes, dict[str, Any]]]:
        began = time.monotonic()
        batch = self._committed()  # before the rows: a batch that is committed meanwhile is compared again
        rows = self._reads.in_range(self._source.name, Keys(), EVERY, None)
        found = {dump([row[name] for name in self._keys]): row for row in rows}
        self._wait_until = time.monotonic() + SHARE * (time.monotonic() - began)
        return batch, found

    def _committed(self) -> int:
        entry = read_entry(self._database.broker, self._source.table_of)
        return 0 if entry is None else entry.batch

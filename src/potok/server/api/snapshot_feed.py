"""Changes between the committed batches of what has no changelog topic: a table, or the instances of a saga."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, Self, TypeVar

from potok.server.api.feeds import Event, check_start
from potok.server.errors import BadRequest
from potok.server.ksql.json_rows import dump
from potok.server.tables.table_reads import EVERY, Keys, TableReads
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.patterns.saga_instances import SagaInstances
from potok.sql.catalog import Source
from potok.statements.database import Database

LOOK_S = 0.2
"""How often the last committed batch is checked."""

SHARE = 10
"""Reading the rows takes at most one tenth of the time."""

_BOUNDS = ("WINDOWSTART", "WINDOWEND")

T = TypeVar("T")


class SnapshotFeed(ABC, Generic[T]):
    """Events for one client; the id of an event is the batch of its snapshot.

    A client that reconnects with the id of an older batch gets a `gap` and then all rows, because the changes in
    between are not known.
    """

    look_s = LOOK_S

    def __init__(self, last_id: str | None, start: str) -> None:
        check_start(start)
        if last_id and not last_id.isdecimal():
            hint = "send the id of the last event unchanged"
            raise BadRequest(f'"{last_id}" is not an event id of this feed', hint=hint)
        self._closed = False
        self._wait_until = 0.0
        self._gap: list[Event] = []
        self._batch, self._rows = self._snapshot()
        if last_id and int(last_id) != self._batch:
            self._gap = [Event(last_id, dump({"from": int(last_id), "to": self._batch}), "gap")]
        if self._gap or (start == "beginning" and not last_id):
            self._batch, self._rows = -1, {}
        self.wake: Callable[[], None] | None = None

    @abstractmethod
    def _committed(self) -> int:
        """Return the last committed batch."""

    @abstractmethod
    def _read(self) -> dict[bytes, T]:
        """Return all rows by key."""

    @abstractmethod
    def _changes(self, changed: Sequence[tuple[bytes, T]], gone: Sequence[tuple[bytes, T]]) -> list[object]:
        """Return the data of the events for rows that changed, and for the last state of those that are gone."""

    @property
    def subscription(self) -> Self:
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
        self._batch, self._rows = self._snapshot()
        changed = [item for item in self._rows.items() if before.get(item[0]) != item[1]]
        gone = [item for item in before.items() if item[0] not in self._rows]
        return [Event(str(self._batch), dump(data)) for data in self._changes(changed, gone)]

    def close(self) -> None:
        self._closed = True
        if self.wake is not None:
            self.wake()

    def _snapshot(self) -> tuple[int, dict[bytes, T]]:
        began = time.monotonic()
        batch = self._committed()  # before the rows: a batch that is committed meanwhile is compared again
        rows = self._read()
        self._wait_until = time.monotonic() + SHARE * (time.monotonic() - began)
        return batch, rows


class TableFeed(SnapshotFeed[dict[str, Any]]):
    """The changes of a table: the batch, the key, and the row, null if it was deleted."""

    def __init__(self, database: Database, source: Source, reads: TableReads, last_id: str | None, start: str) -> None:
        self._database, self._source, self._reads = database, source, reads
        self._keys = [*(column.name for column in source.keys), *(_BOUNDS if source.window is not None else ())]
        super().__init__(last_id, start)

    def _committed(self) -> int:
        entry = read_entry(self._database.broker, self._source.table_of)
        return 0 if entry is None else entry.batch

    def _read(self) -> dict[bytes, dict[str, Any]]:
        rows = self._reads.in_range(self._source.name, Keys(), EVERY, None)
        return {dump([row[name] for name in self._keys]): row for row in rows}

    def _changes(
        self, changed: Sequence[tuple[bytes, dict[str, Any]]], gone: Sequence[tuple[bytes, dict[str, Any]]]
    ) -> list[object]:
        rows = [(row, row) for _, row in changed] + [(row, None) for _, row in gone]
        return [
            {"batch": self._batch, "key": {name: last[name] for name in self._keys}, "row": row} for last, row in rows
        ]


class SagaFeed(SnapshotFeed[tuple[str, bytes]]):
    """The changes of a saga: each is an instance as a list shows it, or `state` null for one that was removed."""

    def __init__(self, instances: SagaInstances, last_id: str | None, start: str) -> None:
        self._instances = instances
        super().__init__(last_id, start)

    def _committed(self) -> int:
        return self._instances.batch()

    def _read(self) -> dict[bytes, tuple[str, bytes]]:
        return self._instances.cells()

    def _changes(
        self, changed: Sequence[tuple[bytes, tuple[str, bytes]]], gone: Sequence[tuple[bytes, tuple[str, bytes]]]
    ) -> list[object]:
        removed = self._instances.shown_cells(gone)
        rows = [{"saga": row["saga"], "id": row["id"], "state": None} for row in removed]
        return [*self._instances.shown_cells(changed), *rows]

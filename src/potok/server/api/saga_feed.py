"""Changes of the instances of a saga: the differences between its committed batches."""

from __future__ import annotations

import time
from collections.abc import Callable

from potok.server.api.feeds import Event
from potok.server.api.snapshot_feed import LOOK_S, SHARE
from potok.server.errors import BadRequest
from potok.server.ksql.json_rows import dump
from potok.snapshots.saga_instances import SagaInstances

Cells = dict[bytes, tuple[str, bytes]]


class SagaFeed:
    """Events of one saga for one client: each is an instance as a list shows it, or `state` null for one that was
    removed. The id of an event is the batch of its snapshot.

    A client that reconnects with the id of an older batch gets a `gap` and then all instances.
    """

    look_s = LOOK_S

    def __init__(self, instances: SagaInstances, last_id: str | None, begin: str) -> None:
        if begin not in ("now", "beginning"):
            raise BadRequest(f'a feed cannot start at "{begin}"', hint="write from=now or from=beginning")
        if last_id and not last_id.isdecimal():
            hint = "send the id of the last event unchanged"
            raise BadRequest(f'"{last_id}" is not an event id of this feed', hint=hint)
        self._instances, self._closed, self._wait_until = instances, False, 0.0
        self._gap: list[Event] = []
        self._batch, self._cells = self._read()
        if last_id and int(last_id) != self._batch:
            self._gap = [Event(last_id, dump({"from": int(last_id), "to": self._batch}), "gap")]
        if self._gap or (begin == "beginning" and not last_id):
            self._batch, self._cells = -1, {}
        self.wake: Callable[[], None] | None = None

    @property
    def subscription(self) -> SagaFeed:
        """Set the function that wakes the reader."""
        return self

    def take(self) -> list[Event] | None:
        """Return the changes since the last call; None at the end."""
        if self._closed:
            return None
        if self._gap:
            gap, self._gap = self._gap, []
            return gap
        if time.monotonic() < self._wait_until or self._instances.batch() == self._batch:
            return []
        before = self._cells
        self._batch, self._cells = self._read()
        changed = [item for item in self._cells.items() if before.get(item[0]) != item[1]]
        gone = [item for item in before.items() if item[0] not in self._cells]
        rows = self._instances.shown_cells(changed)
        rows += [{"saga": row["saga"], "id": row["id"], "state": None} for row in self._instances.shown_cells(gone)]
        return [Event(str(self._batch), dump(row)) for row in rows]

    def close(self) -> None:
        self._closed = True
        if self.wake is not None:
            self.wake()

    def _read(self) -> tuple[int, Cells]:
        began = time.monotonic()
        batch = self._instances.batch()  # before the cells: a batch that is committed meanwhile is compared again
        cells = self._instances.cells()
        self._wait_until = time.monotonic() + SHARE * (time.monotonic() - began)
        return batch, cells

"""What a capture reports while it runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    rows: int
    total: int
    """An estimate of the server."""
    done: bool


@dataclass(frozen=True, slots=True)
class CaptureStatus:
    """A reading of a capture."""

    state: str = "starting"
    """`starting`, `snapshot`, `streaming`, `waiting` for the database or the log, or `stopped`."""
    changes: int = 0
    """Changes that have landed since the start, without the rows of snapshots."""
    lag_bytes: int | None = None
    """How far the server's log is ahead of what has landed."""
    problem: str | None = None
    snapshots: Mapping[str, SnapshotStatus] = field(default_factory=dict)

    @property
    def snapshot_done(self) -> bool:
        return bool(self.snapshots) and all(each.done for each in self.snapshots.values())


class Progress:
    """The status of a capture; any thread may read it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._status = CaptureStatus()

    def update(self, **values: object) -> None:
        with self._lock:
            self._status = replace(self._status, **values)  # type: ignore[arg-type]

    def add_changes(self, count: int) -> None:
        with self._lock:
            self._status = replace(self._status, changes=self._status.changes + count)

    def snapshot(self, table: str, status: SnapshotStatus) -> None:
        with self._lock:
            self._status = replace(self._status, snapshots={**self._status.snapshots, table: status})

    def read(self) -> CaptureStatus:
        with self._lock:
            return self._status

"""What a capture reports while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_AT_ONCE_S = 1.0
"""Less is the interval at which a capture looks for changes."""


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
    retained_bytes: int | None = None
    """How much of its log the server retains for this capture."""
    caught_up_at: float | None = None
    """When everything that the server had sent had landed, by the monotonic clock."""
    problem: str | None = None
    snapshots: Mapping[str, SnapshotStatus] = field(default_factory=dict)

    def lag_seconds(self) -> float | None:
        """Return the time since everything had landed; None before the first time."""
        if self.caught_up_at is None:
            return None
        passed = time.monotonic() - self.caught_up_at
        return passed if passed >= _AT_ONCE_S else 0.0

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

    def caught_up(self) -> None:
        """Note that everything that the server has sent has landed."""
        self.update(caught_up_at=time.monotonic())

    def snapshot(self, table: str, status: SnapshotStatus) -> None:
        with self._lock:
            self._status = replace(self._status, snapshots={**self._status.snapshots, table: status})

    def read(self) -> CaptureStatus:
        with self._lock:
            return self._status

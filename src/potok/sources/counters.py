"""Counts of one listener: every record that it received has landed, was lost for a reason, or is buffered."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

MALFORMED = "malformed"
TOO_LARGE = "too_large"
EXPIRED = "expired"
DROPPED_NEWEST = "dropped_newest"
DROPPED_OLDEST = "dropped_oldest"
NOT_ACCEPTED = "not_accepted"
UNREADABLE = "unreadable"
FULL = "full"
_MOST = (1 << 63) - 1
"""What a sender says that is missing may be more than an integer of JSON and of metrics can be."""

STOPPED = "stopped"
"""Why records are lost that could not be appended before the gateway stopped."""


@dataclass(frozen=True, slots=True)
class Counts:
    """A consistent reading: `received == landed + duplicates + sum(lost.values()) + buffered`.

    `refused` counts what was rejected: its sender knows, and may send it again. `kernel_dropped` counts datagrams
    that the operating system dropped before the listener could read them; None if it does not say. `missing` counts
    messages that never arrived, by the numbers that their sender gave them; None if it does not number them.
    """

    received: int = 0
    landed: int = 0
    duplicates: int = 0
    lost: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    kernel_dropped: int | None = None
    missing: int | None = None

    @property
    def buffered(self) -> int:
        return self.received - self.landed - self.duplicates - sum(self.lost.values())


class Counters:
    """The counters of a listener. Any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._received = self._landed = self._duplicates = 0
        self._lost: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._kernel: dict[int, int] = {}
        self._missing: int | None = None

    def received(self, count: int) -> None:
        with self._lock:
            self._received += count

    def landed(self, count: int) -> None:
        with self._lock:
            self._landed += count

    def lost(self, count: int, reason: str) -> None:
        with self._lock:
            self._lost[reason] += count

    def received_in_vain(self, count: int, reason: str) -> None:
        """Count records that are lost as they arrive."""
        with self._lock:
            self._received += count
            self._lost[reason] += count

    def duplicates(self, count: int) -> None:
        """Count records that had arrived before."""
        with self._lock:
            self._received += count
            self._duplicates += count

    def missing(self, count: int) -> None:
        """Count messages that their sender numbered and that never arrived; 0 to begin with."""
        with self._lock:
            self._missing = min((self._missing or 0) + count, _MOST)

    def refused(self, reason: str, count: int = 1) -> None:
        with self._lock:
            self._refused[reason] += count

    def kernel_dropped(self, socket: int, total: int) -> None:
        """Note how many datagrams the kernel has dropped on a socket so far."""
        with self._lock:
            self._kernel[socket] = total

    def read(self) -> Counts:
        with self._lock:
            kernel = sum(self._kernel.values()) if self._kernel else None
            return Counts(
                self._received,
                self._landed,
                self._duplicates,
                dict(self._lost),
                dict(self._refused),
                kernel,
                self._missing,
            )

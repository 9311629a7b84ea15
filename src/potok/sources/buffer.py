"""The buffer between a listener and the log, in memory or on disk."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection

import pyarrow as pa

from potok.sources.arrival import Arrival
from potok.sources.counters import DROPPED_NEWEST, DROPPED_OLDEST, EXPIRED, UNREADABLE, Counters
from potok.sources.overload import Overload
from potok.sources.spool import Spilled, Spool

IN_MEMORY = 8 << 20
"""The most bytes of a buffer on disk that are in memory; the rest is in files."""

_DISK_S = 0.1

_logger = logging.getLogger("potok.sources")


class Buffer:
    """A bounded queue of arrivals. What was taken counts as buffered until it is settled.

    An arrival that is larger than the whole buffer is accepted when the buffer is empty. On disk, arrivals beyond
    `IN_MEMORY` bytes wait in a spool.
    """

    def __init__(self, overload: Overload, counters: Counters, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._overload, self._counters, self._clock_s = overload, counters, clock_s
        self._waiting: deque[Arrival] = deque()
        self._records = self._bytes = self._in_memory = 0
        self._spool = Spool() if overload.buffer == "disk" else None
        self._closed = self._disk_is_full = False
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def offer(self, arrival: Arrival) -> bool:
        """Accept an arrival, or apply the policy. False if it is not accepted and its sender has to keep it."""
        dropped: list[Arrival] = []
        newest = False
        with self._lock:
            if self._closed:
                return False
            if not self._fits(arrival):
                if self._overload.when_full in ("block", "reject"):
                    return False
                newest = self._overload.when_full == "drop_newest"
                while not newest and self._waiting and not self._fits(arrival):
                    dropped.append(self._remove_oldest())
                newest = newest or not self._fits(arrival)
            if not newest and not self._keep(arrival):
                if self._overload.when_full in ("block", "reject"):
                    return False
                newest = True
            self._counters.received(len(arrival))
            if not newest:
                self._waiting.append(arrival)
                self._records += len(arrival)
                self._bytes += arrival.size
                self._changed.notify_all()
        for each in dropped:
            self._lose(each, DROPPED_OLDEST)
        if newest:
            self._lose(arrival, DROPPED_NEWEST)
        return True

    def put(self, arrival: Arrival) -> bool:
        """Accept an arrival, waiting for room. False if the buffer was closed."""
        while not self.offer(arrival):
            with self._changed:
                if self._closed:
                    return False
                # If it fits, the disk is full, and nobody says when it no longer is.
                self._changed.wait(_DISK_S if self._fits(arrival) else None)
        return True

    def take(self, max_records: int, max_bytes: int, timeout_s: float) -> list[Arrival]:
        """Take the oldest arrivals, waiting for the first; none after the timeout, or once closed and empty."""
        with self._changed:
            if not self._waiting and not self._closed:
                self._changed.wait(timeout_s)
            taken: list[Arrival] = []
            expired: list[Arrival] = []
            records = size = 0
            while self._waiting:
                first = self._waiting[0]
                if taken and (records + len(first) > max_records or size + first.size > max_bytes):
                    break
                self._pop()
                if self.is_expired(first):
                    expired.append(first)
                    continue
                taken.append(first)
                records += len(first)
                size += first.size
        for each in expired:
            self._forget(each)
        self.settle(expired, EXPIRED)
        return [each for each in taken if self._is_read(each)]

    def settle(self, arrivals: Collection[Arrival], reason: str | None) -> None:
        """End arrivals: they have landed, or are lost for a reason. Make room, then notify their senders."""
        if not arrivals:
            return
        count = sum(map(len, arrivals))
        with self._changed:
            self._records -= count
            self._bytes -= sum(arrival.size for arrival in arrivals)
            self._changed.notify_all()
        if reason is None:
            self._counters.landed(count)
        else:
            self._counters.lost(count, reason)
        for arrival in arrivals:
            arrival.finish(reason)

    def settle_rows(self, arrival: Arrival, rows: Collection[int], reason: str) -> None:
        """Lose some records of an arrival that was taken, and keep the others."""
        with self._changed:
            self._records -= len(rows)
            self._changed.notify_all()
        arrival.leave_out(rows)
        self._counters.lost(len(rows), reason)

    def is_expired(self, arrival: Arrival) -> bool:
        limit = self._overload.max_age_ms
        return limit is not None and self._clock_s() - arrival.at_s > limit / 1000

    def close(self) -> None:
        """Accept nothing more; what is buffered can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def is_drained(self) -> bool:
        with self._lock:
            return self._closed and not self._records

    def _fits(self, arrival: Arrival) -> bool:
        if not self._records:
            return True
        return (
            self._records + len(arrival) <= self._overload.max_records
            and self._bytes + arrival.size <= self._overload.max_bytes
        )

    def _remove_oldest(self) -> Arrival:
        oldest = self._pop()
        self._forget(oldest)
        self._records -= len(oldest)
        self._bytes -= oldest.size
        return oldest

    def _keep(self, arrival: Arrival) -> bool:
        """Write an arrival to the spool if there is one, and enough in memory; return whether there is room."""
        if self._spool is None or not self._in_memory or self._in_memory + arrival.size <= IN_MEMORY:
            self._in_memory += arrival.size
            return True
        try:
            arrival.records = self._spool.write(arrival.columns())
        except OSError as error:
            if not self._disk_is_full:
                _logger.warning("a buffer cannot be written to disk: %s", error)
            self._disk_is_full = True
            return False
        self._disk_is_full = False
        return True

    def _is_read(self, arrival: Arrival) -> bool:
        """Read an arrival from the spool if it is there; what cannot be read is lost."""
        if self._spool is None or not isinstance(arrival.records, Spilled):
            return True
        try:
            arrival.records = self._spool.read(arrival.records)
        except (OSError, StopIteration, pa.ArrowException) as error:
            _logger.error("%d records of a buffer cannot be read from disk, and are lost: %s", len(arrival), error)
            self.settle([arrival], UNREADABLE)
            return False
        return True

    def _pop(self) -> Arrival:
        first = self._waiting.popleft()
        if not isinstance(first.records, Spilled):
            self._in_memory -= first.size
        return first

    def _forget(self, arrival: Arrival) -> None:
        if self._spool is not None and isinstance(arrival.records, Spilled):
            self._spool.forget(arrival.records)

    def _lose(self, arrival: Arrival, reason: str) -> None:
        self._counters.lost(len(arrival), reason)
        arrival.finish(reason)

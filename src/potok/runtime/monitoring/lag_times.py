"""Estimate the age of the oldest unread record of a partition from earlier observations of the end of the partition."""

from __future__ import annotations

import logging
import threading
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field

from potok.errors import PotokError
from potok.log.broker import Broker
from potok.retry_policy import brief_calls

log = logging.getLogger(__name__)

MOST_SIGHTINGS = 120
COARSE_MS = 60_000
"""If two observations are further apart, the time is read from the record itself."""

Where = tuple[str, int]


@dataclass(slots=True)
class Sightings:
    """Observations of the end of a partition: time and offset, both increasing."""

    ends: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def note(self, end: int, at_ms: int) -> None:
        """Record the current end. While it does not change, only the time of the last observation is updated."""
        if self.ends and end < self.ends[-1]:
            # The topic was created again.
            self.ends, self.times = [], []
        if len(self.ends) > 1 and self.ends[-2:] == [end, end]:
            self.times[-1] = at_ms
            return
        self.ends.append(end)
        self.times.append(at_ms)
        self._thin()

    def _thin(self) -> None:
        if len(self.ends) > MOST_SIGHTINGS:
            # Thin out the older half: the newer one needs the resolution.
            half = MOST_SIGHTINGS // 2
            self.ends = self.ends[:half:2] + self.ends[half:]
            self.times = self.times[:half:2] + self.times[half:]

    def insert(self, offset: int, at_ms: int) -> None:
        """Add the time at which the record at an offset was appended."""
        row = bisect_right(self.ends, offset)
        self.ends.insert(row, offset)
        self.times.insert(row, at_ms)
        self._thin()

    def appended_at(self, offset: int) -> tuple[int, int] | None:
        """Return bounds of the time at which the record at an offset was appended; None if it precedes all
        observations."""
        row = bisect_right(self.ends, offset)
        if row == 0 or row == len(self.ends):
            return None
        before, after = self.ends[row - 1], self.ends[row]
        low, high = self.times[row - 1], self.times[row]
        part = (offset - before) / (after - before)
        return round(low + part * (high - low)), high - low


class LagTimes:
    """The observations of all partitions in this process."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._lock = threading.Lock()
        self._seen: dict[Where, Sightings] = {}
        self._read_last: dict[Where, tuple[int, int]] = {}
        """By partition, the record whose time was read, and that time."""
        self._wanted: dict[Where, tuple[int, int]] = {}
        """By partition, the range that begins with the record whose time is requested."""
        self._reading: threading.Thread | None = None

    def note(self, topic: str, partition: int, end: int, now_ms: int) -> None:
        with self._lock:
            self._seen.setdefault((topic, partition), Sightings()).note(end, now_ms)

    def lag_ms(self, topic: str, partition: int, offset: int, end: int, now_ms: int) -> int | None:
        """Return the age of the record at `offset`, or 0 if it is the end; None while it is unknown. A record that
        precedes the first observation is read in the background, so that the next call can return its age.
        """
        if offset >= end:
            return 0
        where = (topic, partition)
        with self._lock:
            read = self._read_last.get(where)
            if read is not None and read[0] == offset:
                return max(0, now_ms - read[1])
            found = self._seen[where].appended_at(offset) if where in self._seen else None
            if found is None or found[1] > COARSE_MS:
                self._wanted[where] = (offset, end)
        return None if found is None else max(0, now_ms - found[0])

    def retain(self, partitions: Collection[Where]) -> None:
        """Forget all other partitions."""
        with self._lock:
            for where in self._seen.keys() - partitions:
                self._seen.pop(where)
                self._wanted.pop(where, None)
                self._read_last.pop(where, None)

    def read_wanted(self) -> None:
        """Start a thread that reads the times of records that precede all observations."""
        with self._lock:
            if self._wanted and self._reading is None:
                self._reading = threading.Thread(target=self._read_all, name="potok-lag-times", daemon=True)
                self._reading.start()

    def settle(self) -> None:
        """Wait until all requested records have been read."""
        reading = self._reading
        if reading is not None:
            reading.join()

    def _read_all(self) -> None:
        while True:
            with self._lock:
                if not self._wanted:
                    self._reading = None
                    return
                where, (offset, end) = self._wanted.popitem()
            at_ms = self._read(*where, offset, end)
            with self._lock:
                if at_ms is not None and where in self._seen:
                    self._seen[where].insert(offset, at_ms)
                    self._read_last[where] = (offset, at_ms)

    def _read(self, topic: str, partition: int, offset: int, end: int) -> int | None:
        """Return when the first record of a range was appended; compaction may have removed some."""
        try:
            with brief_calls():
                for batch in self._broker.read(topic, partition, offset, end):
                    if len(batch):
                        found = batch.column("ingested")[0].as_py() or batch.column("timestamp")[0].as_py()
                        return None if found is None else int(found)
        except PotokError as error:
            log.debug('the age of offset %d in topic "%s" is unknown: %s', offset, topic, error)
        return None

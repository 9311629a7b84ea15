"""What the next batch should reach: new records, a tick, or nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from potok.engine.clock import closing_clocks, tick_due
from potok.log.broker import Broker
from potok.state.entry import Entry, mark_of
from potok.state.offsets import Ends, Offsets
from potok.views.ledger_view import read_entry


@dataclass(slots=True)
class Planner:
    """Looks at the log and at the ledger, and decides.

    `target` makes it stop there: the run is over when the target is reached and no tick is due. Then the partitions
    that never had a record do not hold the clock back.
    """

    broker: Broker
    query: str
    topics: list[str]
    steps: Mapping[str, set[str]]
    idle_after_ms: int
    max_records: int
    target: Ends | None = None
    _quiet_since: dict[tuple[str, int], float] = field(default_factory=dict)

    def next(self, limit: int | None = None) -> Offsets:
        """The offsets of the next batch; those of the last one if there is nothing to do."""
        entry = read_entry(self.broker, self.query) or Entry()
        ends = self.target or self.broker.end_offsets_of(self.topics)
        further = entry.offsets.advance(ends, limit or self._limit())
        quiet = self._quiet(entry, ends)
        if further.pending(ends) < entry.offsets.pending(ends):
            read = _moved(entry.offsets, further)
            return replace(further, idle=frozenset(entry.offsets.idle - read), at_ms=_now_ms())
        idle = frozenset(entry.offsets.idle | quiet)
        clocks = closing_clocks(self.steps, entry.offsets.topics, entry.stream_times, idle, entry.clocks)
        if tick_due(clocks, entry.next_ends):
            return replace(entry.offsets, tick=entry.offsets.tick + 1, idle=idle, at_ms=_now_ms())
        return entry.offsets

    def wait_for_records(self, seconds: float) -> None:
        """Return as soon as a topic has grown, or when the time is over."""
        if self.target is not None:
            return
        end = time.monotonic() + seconds
        before = self.broker.end_offsets_of(self.topics)
        while time.monotonic() < end and self.broker.end_offsets_of(self.topics) == before:
            time.sleep(0.002)

    def _limit(self) -> int:
        pace = self.broker.mark(mark_of(self.query, "pace"))
        return min(self.max_records, int(pace)) if pace else self.max_records

    def _quiet(self, entry: Entry, ends: Ends) -> set[tuple[str, int]]:
        """The partitions that have been read to their end for long enough, or that never had a record at the end of a
        run."""
        now = time.monotonic()
        quiet: set[tuple[str, int]] = set()
        for topic, parts in ends.items():
            for partition, end in parts.items():
                place = (topic, partition)
                if entry.offsets.topics.get(topic, {}).get(partition, 0) < end:
                    self._quiet_since.pop(place, None)
                    continue
                since = self._quiet_since.setdefault(place, now)
                never = partition not in entry.stream_times.get(topic, {})
                if (now - since) * 1000 >= self.idle_after_ms or (never and self.target is not None):
                    quiet.add(place)
        return quiet


def _now_ms() -> int:
    """The processing time of a batch: it goes into the offset, so that a replay has the same."""
    return int(time.time() * 1000)


def _moved(before: Offsets, after: Offsets) -> set[tuple[str, int]]:
    return {
        (topic, partition)
        for topic, parts in after.topics.items()
        for partition, offset in parts.items()
        if offset > before.topics.get(topic, {}).get(partition, 0)
    }

"""Timestamp alignment: a batch takes the oldest unread records of its inputs, whichever partition they are in.

The records of aligned topics have one order: by the greatest timestamp so far in their partition, then by whether
their topic only feeds tables, then by topic, partition and offset. A batch that cannot take all that is there takes a
prefix of that order, so what a record meets in a table does not depend on where batches end. Partitions without unread
records hold nothing back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from potok.engine.plan import Plan
from potok.engine.timestamp_scan import TimestampScan
from potok.kernels.expiry import NEVER
from potok.log.broker import Broker
from potok.state.entry import Entry
from potok.state.offsets import Ends, Offsets
from potok.topology.alignment import AlignedTopics
from potok.topology.nodes import StreamSource, TableSource

Partition = tuple[str, int]
Counts = dict[Partition, int]
Unread = Mapping[Partition, tuple[int, int]]
"""The first unread offset of each partition, and its end."""

_LEAST_MS = -(1 << 62)
_GREATEST_MS = 1 << 62
_FULL = 0.75
"""A batch that is as full as this need not be made fuller: each further look at the log costs a little."""


@dataclass(slots=True)
class Aligner:
    """Chooses the ends of batches over aligned topics. Without the plan it knows the timestamps in the log alone, and
    takes them for those of records whose event time comes from a field or a function."""

    broker: Broker
    groups: tuple[AlignedTopics, ...]
    plan: Plan | None = None
    _scans: dict[Partition, TimestampScan] = field(default_factory=dict)
    _first_ms: dict[Partition, tuple[int, int]] = field(default_factory=dict)
    """The first unread offset of each partition, and a time that its unread records have reached."""
    _step_ms: dict[AlignedTopics, int] = field(default_factory=dict)
    """How much time the last batch of a group took, as a first guess for the next one."""

    def advance(self, entry: Entry, ends: Ends, limit: int) -> Offsets:
        """At most `limit` records further. Groups and the topics that are in none share the limit in proportion to what
        they have waiting."""
        offsets = entry.offsets
        further = offsets.advance(ends, limit)
        if not self.groups or further.pending(ends) == 0:
            return further
        topics = {topic: dict(parts) for topic, parts in further.topics.items()}
        for group in self.groups:
            unread = {
                (topic, part): (offsets.topics.get(topic, {}).get(part, 0), end)
                for topic in group.topics
                for part, end in ends.get(topic, {}).items()
                if end > offsets.topics.get(topic, {}).get(part, 0)
            }
            self._look_ahead(unread, entry)
            budget = sum(topics[topic][part] - start for (topic, part), (start, _) in unread.items())
            for (topic, part), count in self._oldest(group, unread, budget).items():
                topics[topic][part] = unread[topic, part][0] + count
        return replace(further, topics=topics)

    def _oldest(self, group: AlignedTopics, unread: Unread, budget: int) -> Counts:
        """How many records of each partition are among the oldest `budget` ones."""
        if len(unread) < 2 or budget >= sum(end - start for start, end in unread.values()):
            return {place: min(budget, end - start) for place, (start, end) in unread.items()}
        below_ms, counts = self._search(group, unread, budget)
        left = budget - sum(counts.values())
        if sum(counts.values()) >= budget * _FULL:
            return counts
        # The records of one more millisecond would be too many: some of them, in their order.
        more = self._older_than(below_ms + 1, unread)
        for place in sorted(unread, key=lambda place: (place[0] not in group.tables, place)):
            taken = min(left, more[place] - counts[place])
            counts[place] += taken
            left -= taken
        return counts

    def _search(self, group: AlignedTopics, unread: Unread, budget: int) -> tuple[int, Counts]:
        """A time before which there are at most `budget` records, either nearly as many or the greatest such time; and
        how many each partition has."""
        low, high = min(self._first_ms[place][1] for place in unread), _GREATEST_MS
        counts = dict.fromkeys(unread, 0)
        step = self._step_ms.get(group, 1000)
        began = low
        while high - low > 1 and sum(counts.values()) < budget * _FULL:
            middle = min(low + step, high - 1) if high == _GREATEST_MS else (low + high) // 2
            found = self._older_than(middle, unread)
            if sum(found.values()) > budget:
                high = middle
            else:
                low, counts = middle, found
            step *= 2
        self._step_ms[group] = max(1, low - began)
        return low, counts

    def _look_ahead(self, unread: Unread, entry: Entry) -> None:
        """Find out from when on each partition has unread records, and read ahead where the log's index does not know
        the timestamps."""
        for (topic, part), (start, end) in unread.items():
            clock_ms = entry.stream_times.get(topic, {}).get(part, NEVER)
            node = self._extracting.get(topic)
            if node is not None and self.plan is not None:
                scan = self._scans.get((topic, part))
                if scan is None or not scan.start <= start <= scan.end:
                    scan = TimestampScan(self.broker, self.plan, node, part, start, start, clock_ms)
                    self._scans[topic, part] = scan
                self._first_ms[topic, part] = start, scan.first_ms(start, end)
            elif clock_ms > NEVER:
                self._first_ms[topic, part] = start, clock_ms
            elif self._first_ms.get((topic, part), (-1, 0))[0] != start:
                batches = self.broker.read(topic, part, start, min(start + 1, end))
                times = [time for batch in batches for time in batch.column("timestamp").to_pylist()]
                self._first_ms[topic, part] = start, min(times, default=_LEAST_MS)

    @property
    def _extracting(self) -> dict[str, StreamSource | TableSource]:
        """The sources whose event time is not that of the log."""
        sources = [] if self.plan is None else self.plan.topology.sources
        return {source.topic: source for source in sources if source.timestamps.function is not None}

    def _older_than(self, time_ms: int, unread: Unread) -> Counts:
        """How many unread records of each partition come before the first that is as late as that."""
        found = self.broker.offsets_at([place for place in unread if place not in self._scans], time_ms)
        found |= {
            place: self._scans[place].first_at(time_ms, *unread[place]) for place in unread if place in self._scans
        }
        return {place: min(max(found[place], start), end) - start for place, (start, end) in unread.items()}

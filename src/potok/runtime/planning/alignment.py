"""Timestamp alignment: a batch takes the oldest unread records of its inputs, whichever partition they are in.

The records of aligned topics have one order: by the greatest timestamp so far in their partition, then by whether
their topic only feeds tables, then by topic, partition and offset. A batch that cannot take all unread records
takes a prefix of that order, so the row that a record joins does not depend on where batches end. Partitions without
unread records do not hold others back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from potok.log.broker import Broker
from potok.operators.windows.expiry import NEVER
from potok.runtime.planning.timestamp_scan import TimestampScan
from potok.state.entry import Entry
from potok.state.offsets import Ends, Offsets
from potok.topology.alignment import AlignedTopics
from potok.topology.execution_plan import Plan
from potok.topology.nodes import StreamSource, TableSource

Partition = tuple[str, int]
Counts = dict[Partition, int]
Unread = Mapping[Partition, tuple[int, int]]
"""The first unread offset of each partition, and its end."""

_LEAST_MS = -(1 << 62)
_GREATEST_MS = 1 << 62
_FULL = 0.75
"""A batch filled to this ratio is full enough: each further lookup in the log has a cost."""


@dataclass(slots=True)
class Aligner:
    """Choose the end offsets of batches over aligned topics. Without a plan it uses the timestamps in the log, even
    where the event time comes from a field or a function."""

    broker: Broker
    groups: tuple[AlignedTopics, ...]
    plan: Plan | None = None
    _scans: dict[Partition, TimestampScan] = field(default_factory=dict)
    _first_ms: dict[Partition, tuple[int, int]] = field(default_factory=dict)
    """The first unread offset of each partition, and a lower bound of the stream time of its unread records."""
    _step_ms: dict[AlignedTopics, int] = field(default_factory=dict)
    """How much stream time the last batch of a group covered, as a first guess for the next one."""

    def advance(self, entry: Entry, ends: Ends, limit: int) -> Offsets:
        """Advance by at most `limit` records, shared between groups and ungrouped topics in proportion to their
        lag."""
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
        """Count the records of each partition among the oldest `budget` ones."""
        if len(unread) < 2 or budget >= sum(end - start for start, end in unread.values()):
            return {topic_partition: min(budget, end - start) for topic_partition, (start, end) in unread.items()}
        below_ms, counts = self._search(group, unread, budget)
        left = budget - sum(counts.values())
        if sum(counts.values()) >= budget * _FULL:
            return counts
        # All records of the next millisecond would be too many: take some, in order.
        more = self._older_than(below_ms + 1, unread)
        for topic_partition in sorted(
            unread, key=lambda topic_partition: (topic_partition[0] not in group.tables, topic_partition)
        ):
            taken = min(left, more[topic_partition] - counts[topic_partition])
            counts[topic_partition] += taken
            left -= taken
        return counts

    def _search(self, group: AlignedTopics, unread: Unread, budget: int) -> tuple[int, Counts]:
        """Find a time before which there are at most `budget` records: one that fills the budget well, or the greatest
        such time. Return it with the count of each partition."""
        low, high = min(self._first_ms[topic_partition][1] for topic_partition in unread), _GREATEST_MS
        counts = dict.fromkeys(unread, 0)
        step = self._step_ms.get(group, 1000)
        start_ms = low
        while high - low > 1 and sum(counts.values()) < budget * _FULL:
            middle = min(low + step, high - 1) if high == _GREATEST_MS else (low + high) // 2
            found = self._older_than(middle, unread)
            if sum(found.values()) > budget:
                high = middle
            else:
                low, counts = middle, found
            step *= 2
        self._step_ms[group] = max(1, low - start_ms)
        return low, counts

    def _look_ahead(self, unread: Unread, entry: Entry) -> None:
        """Find the stream time at which unread records of each partition begin; read ahead where the log's index does
        not have the timestamps."""
        for (topic, part), (start, end) in unread.items():
            stream_time_ms = entry.stream_times.get(topic, {}).get(part, NEVER)
            node = self._extracting.get(topic)
            if node is not None and self.plan is not None:
                scan = self._scans.get((topic, part))
                if scan is None or not scan.start <= start <= scan.end:
                    scan = TimestampScan(self.broker, self.plan, node, part, start, start, stream_time_ms)
                    self._scans[topic, part] = scan
                self._first_ms[topic, part] = start, scan.first_ms(start, end)
            elif stream_time_ms > NEVER:
                self._first_ms[topic, part] = start, stream_time_ms
            elif self._first_ms.get((topic, part), (-1, 0))[0] != start:
                batches = self.broker.read(topic, part, start, min(start + 1, end))
                times = [time for batch in batches for time in batch.column("timestamp").to_pylist()]
                self._first_ms[topic, part] = start, min(times, default=_LEAST_MS)

    @property
    def _extracting(self) -> dict[str, StreamSource | TableSource]:
        """Sources whose event time is not the timestamp in the log."""
        sources = [] if self.plan is None else self.plan.topology.sources
        return {source.topic: source for source in sources if source.timestamps.function is not None}

    def _older_than(self, time_ms: int, unread: Unread) -> Counts:
        """Count the unread records of each partition before the first one at or after `time_ms`."""
        found = self.broker.offsets_at(
            [topic_partition for topic_partition in unread if topic_partition not in self._scans], time_ms
        )
        found |= {
            topic_partition: self._scans[topic_partition].first_at(time_ms, *unread[topic_partition])
            for topic_partition in unread
            if topic_partition in self._scans
        }
        return {
            topic_partition: min(max(found[topic_partition], start), end) - start
            for topic_partition, (start, end) in unread.items()
        }

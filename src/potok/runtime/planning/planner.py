"""Choose the end of the next batch of a query: new records, an empty batch, or none."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from potok.clock import now_ms
from potok.log.broker import Broker
from potok.runtime.planning.alignment import Aligner
from potok.runtime.planning.start_offsets import check_topics
from potok.runtime.planning.table_loading import Gates, held_at_gates, load_gates
from potok.runtime.planning.watermark import advance_watermarks, empty_batch_due
from potok.runtime.queries.ledger import Ledger
from potok.snapshots.ledger_view import read_entry
from potok.state.entry import Entry
from potok.state.offsets import Ends, Offsets
from potok.topology.alignment import AlignedTopics
from potok.topology.execution_plan import Plan


@dataclass(slots=True)
class Planner:
    """Choose the end offsets of batches from the log and the ledger.

    A run with a `target` stops when the target is reached and no empty batch is due. Partitions that never had a
    record then do not hold back the watermark, and only processing-time timers that were due when the run started
    fire: a periodic one would keep the run from ending. `ahead_ms` is how far processing time is ahead of the system
    clock, for tests. `leader` is a query that this one must not overtake. Topics that are its `own`, because it
    writes to them, are read to their end regardless of the target: they hold results of records up to it.
    """

    broker: Broker
    ledger: Ledger
    topics: list[str]
    steps: Mapping[str, set[str]]
    idle_after_ms: int
    max_records: int
    target: Ends | None = None
    ahead_ms: int = 0
    leader: str = ""
    own: frozenset[str] = frozenset()
    aligned: tuple[AlignedTopics, ...] = ()
    plan: Plan | None = None
    max_bytes: int = 0
    _quiet_since: dict[tuple[str, int], float] = field(default_factory=dict)
    _began_ms: int = field(default_factory=lambda: now_ms())
    _aligner: Aligner = field(init=False)
    _gates: Gates | None = None

    def __post_init__(self) -> None:
        self._aligner = Aligner(self.broker, self.aligned, self.plan)

    @property
    def is_done(self) -> bool:
        """Whether the target is reached and nothing is due."""
        return self.target is not None and self.next() == self.ledger.entry.offsets

    def next(self, limit: int | None = None, ends: Ends | None = None) -> Offsets:
        """Return the offsets of the next batch, or those of the last one if there is nothing to do.

        A batch that was started is planned again to the same end.

        Args:
            limit: The maximum number of records.
            ends: The ends of topics, if known.
        """
        entry = self.ledger.entry
        if entry.intended is not None:
            return entry.intended
        ends = self._ends(ends) if self.target is None else {**self.target, **self._own_ends()}
        shrunk = _shrunk(entry.offsets.topics, ends)
        if shrunk:
            check_topics(self.broker, self.ledger.query, shrunk, entry)
        if self._gates is None:
            self._gates = load_gates(self.broker, self.ledger.query)
        reachable = held_at_gates(self._gates, entry.offsets, ends)
        further = self._aligner.advance(entry, reachable, min(limit or self.max_records, self.max_records))
        quiet = self._quiet(entry, ends)
        if further.pending(ends) < entry.offsets.pending(ends):
            read = _moved(entry.offsets, further)
            idle, at_ms = frozenset(entry.offsets.idle - read), now_ms() + self.ahead_ms
            return replace(further, idle=idle, at_ms=at_ms, max_bytes=self.max_bytes)
        idle = frozenset(entry.offsets.idle | quiet)
        watermarks = advance_watermarks(self.steps, entry.offsets.topics, entry.stream_times, idle, entry.watermarks)
        if empty_batch_due(watermarks, entry.next_ends) or self._timer_due(entry):
            return replace(
                entry.offsets, empty_batches=entry.offsets.empty_batches + 1, idle=idle, at_ms=now_ms() + self.ahead_ms
            )
        return entry.offsets

    def _own_ends(self) -> Ends:
        return self.broker.end_offsets_of(sorted(self.own)) if self.own else {}

    def _ends(self, known: Ends | None) -> Ends:
        missing = known is None or any(topic not in known for topic in self.topics)
        ends = self.broker.end_offsets_of(self.topics) if known is None or missing else known
        ends = {topic: ends[topic] for topic in self.topics}
        if not self.leader:
            return ends
        ahead = (read_entry(self.broker, self.leader) or Entry()).offsets.topics
        return {
            topic: {part: min(end, ahead.get(topic, {}).get(part, 0)) for part, end in parts.items()}
            for topic, parts in ends.items()
        }

    def _timer_due(self, entry: Entry) -> bool:
        """Whether a processing-time timer is due.

        A clock that was set back is accepted: the batch would find nothing due, and be planned again immediately.
        """
        now = self.ahead_ms + (now_ms() if self.target is None else min(self._began_ms, now_ms()))
        return any(processing_timer <= now for processing_timer in entry.next_timers.values())

    def _quiet(self, entry: Entry, ends: Ends) -> set[tuple[str, int]]:
        """Return the partitions that have been read to their end for long enough, or that never had a record at the
        end of a run.
        """
        now = time.monotonic()
        quiet: set[tuple[str, int]] = set()
        for topic, parts in ends.items():
            for partition, end in parts.items():
                topic_partition = (topic, partition)
                if entry.offsets.topics.get(topic, {}).get(partition, 0) < end:
                    self._quiet_since.pop(topic_partition, None)
                    continue
                since = self._quiet_since.setdefault(topic_partition, now)
                never = partition not in entry.stream_times.get(topic, {})
                at_the_end = never and self.target is not None and not self.leader
                if (now - since) * 1000 >= self.idle_after_ms or at_the_end:
                    quiet.add(topic_partition)
        return quiet


def _shrunk(offsets: Ends, ends: Ends) -> list[str]:
    """Return the topics that end before the offsets that have been read."""
    return [
        topic
        for topic, parts in ends.items()
        if any(end < offsets.get(topic, {}).get(part, 0) for part, end in parts.items())
    ]


def _moved(before: Offsets, after: Offsets) -> set[tuple[str, int]]:
    return {
        (topic, partition)
        for topic, parts in after.topics.items()
        for partition, offset in parts.items()
        if offset > before.topics.get(topic, {}).get(partition, 0)
    }

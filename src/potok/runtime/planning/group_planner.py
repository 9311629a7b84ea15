"""Plans the next batch of a group: the ends of all topics are read once, and each query plans with them."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from potok.errors import LogError, PotokError
from potok.log.broker import Broker
from potok.runtime.planning.fairness import fair_limits
from potok.runtime.queries.group_query import GroupQuery, MemberState
from potok.state.offsets import Ends, Offsets

PLAN_EVERY_S = 0.1
"""How often to plan while no topic grows: windows end and timers are due by the clock."""

SLOWEST_S = 0.02
"""While no topic grows, looks get rarer, up to this interval, or twice that of the log if it is longer."""


@dataclass(slots=True)
class Planned:
    """The next batch: where it ends for each query that has something to do, and which could not be planned."""

    ends: dict[str, Offsets] = field(default_factory=dict)
    failed: dict[str, BaseException] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)


@dataclass(slots=True)
class GroupPlanner:
    """Plans batches, and waits until there may be another one."""

    broker: Broker
    _ends: Ends = field(default_factory=dict)
    _interval_s: float = 0.0

    def plan(self, members: Collection[GroupQuery]) -> Planned:
        """Plan for the queries that are due."""
        due = [member for member in members if member.is_due]
        self._ends = self._read({topic for member in due for topic in member.topology.source_topics})
        running = sum(member.state is MemberState.RUNNING for member in members)
        limits = self._limits(due, running)
        planned = Planned()
        for member in due:
            try:
                end = member.planner.next(limits.get(member.name), self._ends)
            except PotokError as error:
                planned.failed[member.name] = error
                continue
            if end != member.runner.ledger.entry.offsets:
                planned.ends[member.name] = end
            else:
                planned.idle.append(member.name)
        if planned.ends:
            self._interval_s = 0.0
        return planned

    def wait(self, members: Iterable[GroupQuery], changed: threading.Event) -> None:
        """Return when a topic has grown, something has changed, or it is time to plan again."""
        topics = {topic for member in members if member.is_due for topic in member.topology.source_topics}
        before = {topic: self._ends.get(topic, {}) for topic in topics}
        end, most_s = time.monotonic() + PLAN_EVERY_S, max(SLOWEST_S, 2 * self.broker.poll_interval_s)
        while time.monotonic() < end:
            self._interval_s = min(most_s, self._interval_s + self.broker.poll_interval_s / 10)
            if changed.wait(self._interval_s) or (topics and self._read(topics) != before):
                return

    def _read(self, topics: set[str]) -> Ends:
        """The ends of topics as far as they are known. A topic that is gone, or that nobody answers for, is left out:
        the query that reads it finds out."""
        if not topics:
            return {}
        try:
            return self.broker.end_offsets_of(sorted(topics))
        except LogError:
            found: dict[str, Mapping[int, int]] = {}
            for topic in sorted(topics):
                with suppress(LogError):
                    found |= self.broker.end_offsets_of([topic])
            return found

    def _limits(self, due: Iterable[GroupQuery], running: int) -> dict[str, int]:
        pending: dict[str, int] = {}
        paces: dict[str, int] = {}
        for member in due:
            mine = {topic: self._ends.get(topic, {}) for topic in member.topology.source_topics}
            records = member.runner.ledger.entry.offsets.pending(mine)
            if records and member.runner.pace is not None:
                pending[member.name], paces[member.name] = records, member.runner.pace.next
        return fair_limits(pending, paces, running)

"""Plan the next batch of a group: read the ends of all topics once, and plan each query with them."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from potok.errors import LogError, PotokError
from potok.log.broker import Broker
from potok.runtime.planning.fairness import fair_limits
from potok.runtime.queries.group_query import GroupQuery, QueryState
from potok.state.offsets import Ends, Offsets

PLAN_EVERY_S = 0.1
"""How often to plan while no topic grows: windows may end and timers become due with time."""

SLOWEST_S = 0.02
"""While no topic grows, polls become rarer, up to this interval, or twice that of the log if it is longer."""

IDLE_SHARE = 0.03
"""The maximum share of a core for polling and for planning while no topic grows: with thousands of partitions, both
become rarer."""


@dataclass(slots=True)
class Planned:
    """The next batch: its end for each query that has work, and the queries that could not be planned."""

    ends: dict[str, Offsets] = field(default_factory=dict)
    failed: dict[str, BaseException] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)


@dataclass(slots=True)
class GroupPlanner:
    """Plan batches, and wait until another one may be needed."""

    broker: Broker
    _ends: Ends = field(default_factory=dict)
    _version: int | None = None
    """The version of the log that `_ends` is not older than, if the log has versions."""
    _interval_s: float = 0.0
    _plan_s: float = 0.0
    _read_s: float = 0.0
    """The processor time of the last plan, and of the last reading of the ends."""

    def plan(self, queries: Collection[GroupQuery]) -> Planned:
        """Plan for the queries that are due."""
        began = time.thread_time()
        due = [query for query in queries if query.is_due]
        self._version = self._log_version()
        self._ends = self._read({topic for query in due for topic in query.topology.source_topics})
        running = sum(query.state is QueryState.RUNNING for query in queries)
        limits = self._limits(due, running)
        planned = Planned()
        for query in due:
            try:
                end = query.planner.next(limits.get(query.name), self._ends)
            except PotokError as error:
                planned.failed[query.name] = error
                continue
            if end != query.runner.ledger.entry.offsets:
                planned.ends[query.name] = end
            else:
                planned.idle.append(query.name)
        if planned.ends:
            self._interval_s = 0.0
        self._plan_s = time.thread_time() - began
        return planned

    def wait(self, queries: Iterable[GroupQuery], changed: threading.Event) -> None:
        """Return when a topic has grown, something has changed, or it is time to plan again."""
        topics = {topic for query in queries if query.is_due for topic in query.topology.source_topics}
        before = {topic: self._ends.get(topic, {}) for topic in topics}
        end = time.monotonic() + max(PLAN_EVERY_S, self._plan_s / IDLE_SHARE)
        most_s = max(SLOWEST_S, 2 * self.broker.poll_interval_s)
        while (left_s := end - time.monotonic()) > 0:
            self._interval_s = min(most_s, self._interval_s + self.broker.poll_interval_s / 10)
            if changed.wait(min(left_s, max(self._interval_s, self._read_s / IDLE_SHARE))):
                return
            if topics and self._may_have_grown() and self._read(topics) != before:
                return

    def _may_have_grown(self) -> bool:
        """Whether the log has changed since the ends were read; if it has no versions, it may have."""
        version = self._log_version()
        grown = version is None or version != self._version
        self._version = version
        return grown

    def _log_version(self) -> int | None:
        """Return the version of the log; None if it has none or does not answer: reading the ends reports the error."""
        try:
            return self.broker.version()
        except LogError:
            return None

    def _read(self, topics: set[str]) -> Ends:
        """Return the known ends of topics. A topic that is missing or unreachable is left out: the query that reads
        it reports the error.
        """
        if not topics:
            return {}
        began = time.thread_time()
        try:
            return self.broker.end_offsets_of(sorted(topics))
        except LogError:
            found: dict[str, Mapping[int, int]] = {}
            for topic in sorted(topics):
                with suppress(LogError):
                    found |= self.broker.end_offsets_of([topic])
            return found
        finally:
            self._read_s = time.thread_time() - began

    def _limits(self, due: Iterable[GroupQuery], running: int) -> dict[str, int]:
        pending: dict[str, int] = {}
        paces: dict[str, int] = {}
        for query in due:
            mine = {topic: self._ends.get(topic, {}) for topic in query.topology.source_topics}
            records = query.runner.ledger.entry.offsets.pending(mine)
            if records and query.runner.pace is not None:
                pending[query.name], paces[query.name] = records, query.runner.pace.next
        return fair_limits(pending, paces, running)

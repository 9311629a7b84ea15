"""What the next batch of all members should reach."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from potok.engine.pace import next_size
from potok.engine.planner import Planner
from potok.engine.shared.fairness import FIRST, fair_limits
from potok.engine.shared.roll import Listed, Roll, roll_mark
from potok.engine.shared.shares import Share, Shares
from potok.errors import LogError, PotokError
from potok.log.broker import Broker
from potok.state.entry import Entry, mark_of
from potok.state.offsets import Ends, Offsets
from potok.views.ledger_view import read_entry


@dataclass(slots=True)
class SharedPlanner:
    """Asks a planner for each member that runs. Lives in the process of the source, and learns from marks who they are
    and how far each has come."""

    broker: Broker
    shared: str
    idle_after_ms: int
    max_records: int
    max_bytes: int = 0
    _planners: dict[str, tuple[Listed, Planner]] = field(default_factory=dict)
    _seen: tuple[bytes | None, Roll] = (None, Roll())
    _last: Shares = field(default_factory=Shares)

    def next(self) -> Shares:
        """The shares of the next batch; the last ones again if there is nothing to do."""
        roll, now_ms = self._roll(), int(time.time() * 1000)
        due = {name: listed for name, listed in roll.running.items() if roll.waiting_until.get(name, 0) <= now_ms}
        shares: dict[str, Share] = {name: roll.owed[name] for name in due if name in roll.owed}
        members = {name: listed for name, listed in due.items() if name not in shares}
        before = {name: (read_entry(self.broker, name) or Entry()).offsets for name in members}
        limits = self._limits(members, before, len(roll.running))
        in_trouble: list[str] = []
        for name, listed in members.items():
            try:
                after = self._planner(name, listed).next(limits.get(name))
            except PotokError:
                in_trouble.append(name)
                continue
            if after != before[name]:
                shares[name] = Share(before[name].topics, after)
            elif name in roll.waiting_until:
                # Nothing is left to do; whether the trouble is over is for the driver to say.
                in_trouble.append(name)
        if shares or in_trouble:
            # Later than the last ones, also in the same millisecond, or they would be taken for the same.
            at_ms = max(now_ms, self._last.at_ms + 1)
            self._last = Shares(at_ms, shares, tuple(in_trouble))
        return self._last

    def wait_for_records(self, seconds: float) -> None:
        """Return as soon as a topic has grown or somebody came or went, or when the time is over."""
        end = time.monotonic() + seconds
        before = self._look()
        while time.monotonic() < end and self._look() == before:
            time.sleep(self.broker.poll_interval_s)

    def _look(self) -> tuple[bytes | None, Ends]:
        roll = self._roll()
        return self._seen[0], self._ends({topic for listed in roll.running.values() for topic in listed.topics})

    def _roll(self) -> Roll:
        data = self.broker.mark(roll_mark(self.shared))
        if data != self._seen[0]:
            self._seen = (data, Roll.of_bytes(data))
            running = self._seen[1].running
            self._planners = {name: kept for name, kept in self._planners.items() if running.get(name) == kept[0]}
        return self._seen[1]

    def _ends(self, topics: set[str]) -> Ends:
        """The ends of topics as far as they are known: that one was deleted, or that nobody answers, is found again for
        each member, and is the trouble of those who read it."""
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

    def _limits(self, members: Mapping[str, Listed], offsets: Mapping[str, Offsets], running: int) -> dict[str, int]:
        ends = self._ends({topic for listed in members.values() for topic in listed.topics})
        waiting: dict[str, int] = {}
        for name, listed in members.items():
            mine = {topic: ends.get(topic, {}) for topic in listed.topics}
            pending = offsets[name].pending(mine)
            if pending:
                waiting[name] = pending
        fair = fair_limits(waiting, {name: self._pace(name) for name in waiting}, running)
        return {name: min(limit, self.max_records) for name, limit in fair.items()}

    def _pace(self, name: str) -> int:
        learnt = next_size(self.broker.mark(mark_of(name, "pace")))
        return min(self.max_records, learnt or FIRST)

    def _planner(self, name: str, listed: Listed) -> Planner:
        if name not in self._planners:
            steps = {step: set(topics) for step, topics in listed.steps.items()}
            bounds = self.idle_after_ms, self.max_records
            planner = Planner(self.broker, name, list(listed.topics), steps, *bounds, aligned=listed.aligned)
            planner.max_bytes = self.max_bytes
            self._planners[name] = (listed, planner)
        return self._planners[name][1]

"""Report dead letters while a query runs: log the first of each step, then a count at growing intervals."""

from __future__ import annotations

import logging
import shlex
import time
from collections import Counter
from collections.abc import Callable

from potok.operators.core.dead_letters import Reason, ReasonCounter, ReasonCounts
from potok.topology.graph import Topology
from potok.topology.nodes import Agents

log = logging.getLogger(__name__)

EVERY_S = 5.0
"""How long to wait before further dead letters are counted; it doubles each time while they keep coming."""

MOST_S = 600.0


class DeadLetterReporter:
    """Log the dead letters of a query. Late records are not an error of the program, and are logged as warnings."""

    def __init__(
        self, topology: Topology, broker: str = "", clock: Callable[[], float] = time.monotonic, *, see: str = ""
    ) -> None:
        """`broker` is the URL of a log that is not the default of the commands; `see` says how to read dead letters
        where no command can.
        """
        self._clock = clock
        words = ["potok", "dead-letters", "list", "--query", topology.name, *(["--broker", broker] if broker else [])]
        self._see = see or shlex.join(words)
        self._agents = {agent.name for node in topology.of_type(Agents) for agent in node.agent_group.agents}
        self._known: set[tuple[str, str]] = set()
        self._more: Counter[tuple[str, str]] = Counter()
        self._reported_at = float("-inf")
        self._wait_s = EVERY_S

    def report(self, reason_counts: ReasonCounts) -> None:
        """Report the dead letters of a committed batch."""
        for (step, reason), counter in reason_counts.items():
            if (step, reason) in self._known:
                self._more[step, reason] += counter.count
                continue
            self._known.add((step, reason))
            log.log(_level(reason), "%s: %s", self._step(step), self._first(counter))
            self._reported_at, self._wait_s = self._clock(), EVERY_S
        self.report_pending()

    def report_pending(self, *, now: bool = False) -> None:
        """Report the count of further dead letters, unless the last report is recent."""
        if not self._more or not (now or self._clock() - self._reported_at >= self._wait_s):
            return
        more, self._more = self._more, Counter()
        self._reported_at, self._wait_s = self._clock(), min(2 * self._wait_s, MOST_S)
        for (step, reason), count in more.items():
            log.log(_level(reason), "%s: %s set aside (%s); %s", self._step(step), _more(count), reason, self._see)

    def _step(self, step: str) -> str:
        return f'{"agent" if step in self._agents else "step"} "{step}"'

    def _first(self, counter: ReasonCounter) -> str:
        position = [f"record {counter.topic}/{counter.partition}@{counter.offset}"] if counter.topic else []
        more = [_more(counter.count - 1)] if counter.count > 1 else []
        details = ", ".join([*position, *more, "set aside"])
        return f"{counter.error} ({details}; {self._see})"


def _level(reason: str) -> int:
    return logging.WARNING if reason == Reason.LATE.value else logging.ERROR


def _more(count: int) -> str:
    return f"{count:,} more record{'' if count == 1 else 's'}"

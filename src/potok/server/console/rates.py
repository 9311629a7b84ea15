"""Compute records per second from totals that change once per batch."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping

SPAN_MS = 5_000
"""Long enough to hold several batches, short enough to follow a change while one looks."""


class Rates:
    """Rates of named totals over the last few seconds.

    A total moves only when a batch commits, so a difference between two looks would jump between nothing and a whole
    batch. The rate is taken from commit to commit; while no commit comes, the time since the last one counts too once
    it is longer than the batches were, so that a query that stands still sinks to zero.
    """

    def __init__(self, span_ms: int = SPAN_MS) -> None:
        self._span_ms = span_ms
        self._commits: deque[tuple[int, dict[str, int]]] = deque()
        self._began: tuple[int, dict[str, int]] | None = None

    def begin(self, began_ms: int, totals: Mapping[str, int]) -> None:
        """Take note of the totals before the first commit that is seen: as long as it is the only one, it gives the
        rate."""
        if not self._commits:
            self._began = (began_ms, dict(totals))

    def record(self, committed_at_ms: int, totals: Mapping[str, int]) -> None:
        """Take note of the totals as of a commit. The same commit may be told any number of times."""
        if self._commits and committed_at_ms <= self._commits[-1][0]:
            return
        if self._commits and any(totals.get(name, 0) < total for name, total in self._commits[-1][1].items()):
            self._commits.clear()  # the totals began anew: the query was started again
        self._commits.append((committed_at_ms, dict(totals)))
        while len(self._commits) > 2 and self._commits[1][0] <= committed_at_ms - self._span_ms:
            self._commits.popleft()

    def at(self, now_ms: int) -> dict[str, float]:
        """The rate of each total, seen at `now_ms`."""
        commits = list(self._commits)
        if len(commits) == 1 and self._began is not None:
            commits.insert(0, self._began)
        if len(commits) < 2:
            return {}
        (began, first), (ended, last) = commits[0], commits[-1]
        longest = max(later - sooner for (sooner, _), (later, _) in itertools.pairwise(commits))
        silence = max(0, now_ms - ended - 2 * longest)
        if silence > self._span_ms:
            return dict.fromkeys(last, 0.0)
        elapsed = ended - began + silence
        return {name: (total - first.get(name, 0)) * 1000 / elapsed for name, total in last.items()}

"""Compute records per second from totals that change once per batch."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping

SPAN_MS = 5_000
"""Long enough to contain several batches, short enough to show a change quickly."""


class Rates:
    """Rates of named totals over the last few seconds.

    A total changes only when a batch commits, so the difference between two samples would jump between zero and a
    whole batch. The rate is computed from commit to commit. While no batch commits, the time since the last commit
    counts once it exceeds the duration of a batch, so that the rate of a stalled query falls to zero.
    """

    def __init__(self, span_ms: int = SPAN_MS) -> None:
        self._span_ms = span_ms
        self._commits: deque[tuple[int, dict[str, int]]] = deque()
        self._began: tuple[int, dict[str, int]] | None = None

    def begin(self, began_ms: int, totals: Mapping[str, int]) -> None:
        """Record the totals before the first observed commit; until there is a second one, they determine the rate."""
        if not self._commits:
            self._began = (began_ms, dict(totals))

    def record(self, committed_at_ms: int, totals: Mapping[str, int]) -> None:
        """Record the totals as of a commit. Repeated calls for the same commit have no effect."""
        if self._commits and committed_at_ms <= self._commits[-1][0]:
            return
        if self._commits and any(totals.get(name, 0) < total for name, total in self._commits[-1][1].items()):
            self._commits.clear()  # the totals were reset: the query was started again
        self._commits.append((committed_at_ms, dict(totals)))
        while len(self._commits) > 2 and self._commits[1][0] <= committed_at_ms - self._span_ms:
            self._commits.popleft()

    def at(self, now_ms: int) -> dict[str, float]:
        """Return the rate of each total at `now_ms`."""
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

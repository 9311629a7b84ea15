"""Figures of a query that belong to this process; its totals are committed with its batches."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from potok.errors import LogError, SinkError, StateError
from potok.monitoring.families import BATCH_DURATION
from potok.monitoring.histogram import Histogram

PHASES = ("plan", "execute", "deliver", "commit", "total")


def cause_name(error: BaseException | None) -> str:
    """Classify an error for metrics, as one of a few labels."""
    kinds = ((LogError, "log"), (StateError, "state"), (SinkError, "sink"))
    return next((name for kind, name in kinds if isinstance(error, kind)), "query")


@dataclass(slots=True)
class QueryFigures:
    """The durations of committed batches, restarts and waits by cause. They outlive restarts of the query."""

    durations: Mapping[str, Histogram] = field(
        default_factory=lambda: {phase: Histogram(BATCH_DURATION.buckets) for phase in PHASES}
    )
    restarts: Counter[str] = field(default_factory=Counter)
    waits: Counter[str] = field(default_factory=Counter)

    def committed(self, seconds: Mapping[str, float]) -> None:
        """Observe a committed batch by the seconds of its phases."""
        for phase, took in seconds.items():
            self.durations[phase].observe(took)

    def waited(self, error: BaseException) -> None:
        self.waits[cause_name(error)] += 1


class GroupFigures:
    """The figures of the queries of a group. They outlive the group if it is started again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: dict[str, QueryFigures] = {}

    def of(self, query: str) -> QueryFigures:
        with self._lock:
            return self._queries.setdefault(query, QueryFigures())

    def restarted(self, query: str, error: BaseException | None) -> None:
        """Count a start after a failure."""
        self.of(query).restarts[cause_name(error)] += 1

    def all_restarted(self) -> None:
        """Count a restart of the whole group."""
        with self._lock:
            for figures in self._queries.values():
                figures.restarts["group"] += 1

    def forget(self, query: str) -> None:
        with self._lock:
            self._queries.pop(query, None)

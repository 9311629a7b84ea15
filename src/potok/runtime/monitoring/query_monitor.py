"""Monitor queries: their metrics, whether their batch loop moves, and whether they are ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from potok.duration import show_ms
from potok.log.broker import Broker
from potok.monitoring.health import Problem
from potok.monitoring.monitor import Monitor
from potok.runtime.monitoring.query_collector import QueryCollector
from potok.runtime.monitoring.readings import Reading, Readings, group_readings, stored_readings
from potok.runtime.queries.query import Query
from potok.runtime.queries.query_group import QueryGroup
from potok.settings import Settings

WELL = ("running", "paused")
"""States of queries that are ready. A query is paused on purpose."""


class GroupMonitor:
    """The checks of the queries of this process; it registers itself with a monitor.

    Args:
        group: Returns the group of queries; None while it has not started.
        readings: Returns the readings of the queries.
    """

    def __init__(
        self,
        monitor: Monitor,
        broker: Broker,
        settings: Settings,
        group: Callable[[], QueryGroup | None],
        readings: Readings,
    ) -> None:
        self._settings, self._group, self._readings = settings, group, readings
        self.collector = QueryCollector(broker, readings)
        monitor.registry.add(self.collector)
        monitor.health.live.append(self._stuck)
        monitor.health.ready.append(self._not_ready)

    def _stuck(self) -> Iterator[Problem]:
        """Yield a problem if the batch loop has started no iteration for longer than the setting `stuck_after`."""
        group = self._group()
        if group is None or not group.is_active:
            # The caller ends the process, or starts it again.
            return
        still_ms = round((time.monotonic() - group.moved_at) * 1000)
        if still_ms > self._settings.stuck_after_ms:
            detail = f"the batch loop has not moved for {still_ms // 1000} seconds"
            yield Problem("stuck", group.name, detail)

    def _not_ready(self) -> Iterator[Problem]:
        """Yield a problem for each query that does not run, or is further behind than the setting `ready_lag`."""
        readings = list(self._readings())
        for reading in readings:
            if reading.state not in WELL:
                yield Problem(reading.state, reading.query, reading.error or f"the query is {reading.state}")
        most_ms = self._settings.ready_lag_ms
        if not most_ms:
            return
        # Lags of all, because the collector forgets the topics of those that are left out.
        running = {reading.query for reading in readings if reading.state == "running"}
        for query, lags in self.collector.lags(readings).items():
            if query not in running:
                continue
            oldest_s = max((lag.seconds or 0.0 for lag in lags.values()), default=0.0)
            if oldest_s * 1000 > most_ms:
                detail = f"its oldest unread record is {oldest_s:.0f} seconds old, the bound is {show_ms(most_ms)}"
                yield Problem("lag", query, detail)


class ProgramMonitor:
    """Monitors the query of a program from before it starts.

    >>> watched = ProgramMonitor(Monitor(), broker, settings, "orders")
    >>> watched.started(potok.start(builder))
    """

    def __init__(self, monitor: Monitor, broker: Broker, settings: Settings, query: str) -> None:
        self.monitor, self._broker, self._query = monitor, broker, query
        self._group: QueryGroup | None = None
        GroupMonitor(monitor, broker, settings, lambda: self._group, self._readings)

    def started(self, query: Query) -> Query:
        """Observe a query from now on."""
        self._group = query.group
        return query

    def _readings(self) -> Iterator[Reading]:
        if self._group is not None:
            yield from group_readings(self._group)
            return
        for stored in stored_readings(self._broker, [self._query]):
            yield replace(stored, state="starting", error="")

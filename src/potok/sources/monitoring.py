"""Monitor the listeners of a gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from potok.monitoring import families as f
from potok.monitoring.health import Problem
from potok.monitoring.monitor import Monitor
from potok.monitoring.scrape import Scrape
from potok.sources.counters import (
    DROPPED_NEWEST,
    DROPPED_OLDEST,
    EXPIRED,
    FULL,
    MALFORMED,
    NOT_ACCEPTED,
    TOO_LARGE,
    UNREADABLE,
)
from potok.sources.gateway import ListenerStatus

LOST = (MALFORMED, TOO_LARGE, EXPIRED, DROPPED_NEWEST, DROPPED_OLDEST, NOT_ACCEPTED, UNREADABLE)

Statuses = Callable[[], Iterable[ListenerStatus]]


def monitor_listeners(monitor: Monitor, statuses: Statuses) -> None:
    """Register the listeners of a process with its monitor."""

    def collect(scrape: Scrape) -> None:
        for status in statuses():
            _add(scrape, status)

    def not_ready() -> Iterator[Problem]:
        for status in statuses():
            if status.problem is not None:
                yield Problem("problem", status.name, status.problem)

    monitor.registry.add(collect)
    monitor.health.ready.append(not_ready)


def _add(scrape: Scrape, status: ListenerStatus) -> None:
    name, counts = status.name, status.counts
    scrape.add(f.GATEWAY_UP, int(status.problem is None), name)
    scrape.add(f.GATEWAY_RECEIVED, counts.received, name)
    scrape.add(f.GATEWAY_LANDED, counts.landed, name)
    scrape.add(f.GATEWAY_DUPLICATES, counts.duplicates, name)
    scrape.add(f.GATEWAY_BUFFERED, counts.buffered, name)
    # Every reason from the beginning, so that the first loss is an increase.
    lost = dict.fromkeys(LOST, 0) | dict(counts.lost)
    lost |= {"kernel_dropped": counts.kernel_dropped or 0, "missing": counts.missing or 0}
    for reason, count in lost.items():
        scrape.add(f.GATEWAY_LOST, count, name, reason)
    for reason, count in ({FULL: 0} | dict(counts.refused)).items():
        scrape.add(f.GATEWAY_REFUSED, count, name, reason)

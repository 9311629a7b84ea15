"""Monitor captures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from potok.monitoring import families as f
from potok.monitoring.health import Problem
from potok.monitoring.monitor import Monitor
from potok.monitoring.scrape import Scrape
from potok.sources.cdc.runner import CaptureRunner

Runners = Callable[[], Iterable[CaptureRunner]]


def monitor_captures(monitor: Monitor, runners: Runners) -> None:
    """Register the captures of a process with its monitor."""

    def collect(scrape: Scrape) -> None:
        for runner in runners():
            _add(scrape, runner)

    def not_ready() -> Iterator[Problem]:
        for runner in runners():
            status = runner.status()
            if status.state not in ("snapshot", "streaming"):
                yield Problem(status.state, runner.capture.name, status.problem or f"the capture is {status.state}")

    monitor.registry.add(collect)
    monitor.health.ready.append(not_ready)


def _add(scrape: Scrape, runner: CaptureRunner) -> None:
    name, status = runner.capture.name, runner.status()
    for state in f.CDC_STATES:
        scrape.add(f.CDC_STATE, int(state == status.state), name, state)
    scrape.add(f.CDC_CHANGES, status.changes, name)
    for table, snapshot in status.snapshots.items():
        scrape.add(f.CDC_SNAPSHOT_ROWS, snapshot.rows, name, table)
    scrape.add(f.CDC_LAG_BYTES, status.lag_bytes, name)
    scrape.add(f.CDC_LAG_SECONDS, status.lag_seconds(), name)
    scrape.add(f.CDC_SLOT_BYTES, status.retained_bytes, name)

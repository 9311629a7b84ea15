"""A process lives while its batch loop moves, and is ready while its queries run and keep up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from potok.errors import SinkError
from potok.monitoring.health import Problem
from potok.monitoring.monitor import Monitor
from potok.runtime.monitoring.query_monitor import GroupMonitor
from potok.runtime.monitoring.readings import group_readings
from potok.settings import Settings
from runtime.queries.by_hand import ByHand, counting, send


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[ByHand]:
    found = ByHand(tmp_path)
    yield found
    found.stop()
    found.broker.close()


def monitored(shared: ByHand, **settings: int) -> tuple[Monitor, GroupMonitor]:
    monitor = Monitor()
    chosen = Settings(broker=shared.broker.url, **settings)
    made = GroupMonitor(monitor, shared.broker, chosen, lambda: shared, lambda: group_readings(shared))
    return monitor, made


def reasons(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(each.reason, each.subject) for each in problems]


def test_a_process_whose_queries_run_is_live_and_ready(shared: ByHand) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    shared.settle()
    monitor, _ = monitored(shared)
    assert (monitor.health.is_live(), monitor.health.is_ready()) == ([], [])


def test_a_loop_that_does_not_move_is_not_live_until_it_moves(shared: ByHand) -> None:
    monitor, _ = monitored(shared, stuck_after_ms=60_000)
    shared.moved_at = time.monotonic() - 61
    assert reasons(monitor.health.is_live()) == [("stuck", "shared")]
    assert reasons(monitor.health.is_ready()) == [("stuck", "shared")]
    shared.step()
    assert monitor.health.is_live() == []


def test_each_query_that_does_not_run_is_named_with_its_error(shared: ByHand) -> None:
    send(shared.broker, 10)
    for name in ("failing", "waiting", "paused", "running"):
        shared.add(counting(name))
    shared.settle()
    shared.pause("paused")
    error = SinkError("the sink does not answer")
    error.passing = True
    members = {query.name: query for query in shared.members()}
    assert members["waiting"].wait(error, 60_000)
    members["failing"].fail(SinkError("the sink is full"))
    monitor, _ = monitored(shared)
    assert monitor.health.is_ready() == [
        Problem("failed", "failing", "the sink is full"),
        Problem("waiting", "waiting", "the sink does not answer"),
    ]
    assert monitor.health.is_live() == []


def test_a_query_whose_oldest_unread_record_is_too_old_is_not_ready(
    shared: ByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(shared.broker, 10)
    shared.add(counting("one"))
    now = time.time() * 1000
    for bound_ms, found in ((60_000, [("lag", "one")]), (600_000, []), (0, [])):
        monitor, made = monitored(shared, ready_lag_ms=bound_ms)
        monkeypatch.setattr("potok.runtime.monitoring.query_collector.now_ms", lambda: round(now + 120_000))
        monitor.health.is_ready()
        made.collector.lag_times.settle()
        assert reasons(monitor.health.is_ready()) == found


def test_a_look_at_what_is_ready_keeps_the_lags_of_queries_that_do_not_run(shared: ByHand) -> None:
    send(shared.broker, 10)
    shared.add(counting("failing"))
    shared.settle()
    {query.name: query for query in shared.members()}["failing"].fail(SinkError("the sink is full"))
    _, made = monitored(shared, ready_lag_ms=1)
    made.collector.lags(group_readings(shared))
    seen = set(made.collector.lag_times._seen)
    assert seen and reasons(list(made._not_ready())) == [("failed", "failing")]
    assert set(made.collector.lag_times._seen) == seen

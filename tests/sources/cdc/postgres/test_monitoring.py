"""A capture tells how far it is behind its database, and what it makes the database retain."""

from __future__ import annotations

from pathlib import Path

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.monitoring.monitor import Monitor
from potok.sources.cdc.monitoring import monitor_captures
from potok.sources.cdc.runner import CaptureRunner
from tests.sources.cdc.changed import Database, snapshot_landed, wait_for


def test_a_capture_that_has_caught_up_is_ready_and_has_no_lag(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE users (id int PRIMARY KEY, name text)")
    monitor, runners = Monitor(), list[CaptureRunner]()
    monitor_captures(monitor, lambda: runners)
    with CaptureRunner(database.capture(), EmbeddedBroker(tmp_path)) as runner:
        runners.append(runner)
        snapshot_landed(runner)
        database.run("INSERT INTO users VALUES (1, 'Ann')")
        wait_for(lambda: runner.status().changes == 1, runner)
        wait_for(lambda: runner.status().retained_bytes is not None, runner)
        found = monitor.registry.expose().body.decode().splitlines()
        assert monitor.health.is_ready() == []
    name = database.name
    assert f'potok_cdc_changes_total{{capture="{name}"}} 1' in found
    assert f'potok_cdc_lag_seconds{{capture="{name}"}} 0.0' in found
    assert f'potok_cdc_state{{capture="{name}",state="streaming"}} 1' in found
    assert any(line.startswith(f'potok_cdc_slot_retained_bytes{{capture="{name}"}} ') for line in found)
    assert [each.reason for each in monitor.health.is_ready()] == ["stopped"]

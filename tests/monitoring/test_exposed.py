"""Alerts and panels use only metrics that running programs expose: a query, a server, a gateway and a capture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import httpx
import pytest
from tests.sources.cdc.changed import Database, snapshot_landed, wait_for
from tests.sources.datagrams.test_udp import receiving

from monitoring.test_generated import metrics_in
from potok import StreamsBuilder, hours, tumbling
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.monitoring.alerts import ALERTS
from potok.monitoring.dashboard import expressions
from potok.monitoring.families import FAMILIES, TIME_JUMPS
from potok.monitoring.monitor import Monitor
from potok.monitoring.registry import Registry
from potok.records.log_record import LogRecord
from potok.runtime.monitoring.query_collector import QueryCollector
from potok.runtime.monitoring.readings import group_readings
from potok.server.server import Server
from potok.sources.cdc.monitoring import monitor_captures
from potok.sources.cdc.runner import CaptureRunner
from potok.sources.monitoring import monitor_listeners
from runtime.queries.by_hand import ByHand
from servers import PostgresServer
from statements.playing import Play


def of_text(text: str) -> set[str]:
    """Return the metrics that have a sample in an exposition."""
    return {name for line in text.splitlines() if not line.startswith("#") for name in metrics_in(line.split("{")[0])}


def of_registry(registry: Registry) -> set[str]:
    return of_text(registry.expose().body.decode())


def of_a_query(directory: Path) -> set[str]:
    builder = StreamsBuilder("hourly")
    orders = builder.stream("orders", value="user string, amount bigint")
    orders.group_by("user").windowed_by(tumbling(hours(1))).count(name="hourly")
    group = ByHand(directory)
    group.broker.create_topic("orders", 1)
    group.add(builder)
    registry = Registry()
    registry.add(QueryCollector(group.broker, lambda: group_readings(group)))
    for at_ms in (1_000, 9 * 3_600_000):
        group.broker.append("orders", [LogRecord(b"k", b'{"user": "a", "amount": 1}', at_ms)])
        group.settle()
    found = of_registry(registry)
    group.stop()
    group.broker.close()
    return found


def of_a_server(directory: Path) -> set[str]:
    play = Play(directory)
    play.broker.create_topic("t", 1)
    play.broker.commit("billing", "t", {0: 0})
    with Server(play.database, port=0) as server:
        found = of_text(httpx.get(f"{server.url}/metrics").text)
    play.close()
    return found


def of_a_gateway(directory: Path) -> set[str]:
    monitor = Monitor()
    with receiving(directory) as (gateway, _):
        monitor_listeners(monitor, gateway.status)
        return of_registry(monitor.registry)


def of_a_capture(directory: Path, postgres: PostgresServer) -> set[str]:
    database = Database(postgres)
    database.run("CREATE TABLE users (id int PRIMARY KEY, name text)")
    monitor = Monitor()
    with CaptureRunner(database.capture(), EmbeddedBroker(directory)) as runner:
        monitor_captures(monitor, lambda: [runner])
        snapshot_landed(runner)
        database.run("INSERT INTO users VALUES (1, 'Ann')")
        wait_for(lambda: runner.status().retained_bytes is not None, runner)
        found = of_registry(monitor.registry)
    database.close()
    return found


@pytest.fixture(scope="module")
def exposed(logical_postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    new = tmp_path_factory.mktemp
    return (
        of_a_query(new("query"))
        | of_a_server(new("server"))
        | of_a_gateway(new("gateway"))
        | of_a_capture(new("capture"), logical_postgres)
    )


def missing(exprs: Iterable[str], exposed: set[str]) -> dict[str, set[str]]:
    return {expr: absent for expr in exprs if (absent := metrics_in(expr) - exposed)}


def test_every_alert_and_panel_has_its_metrics(exposed: set[str]) -> None:
    assert missing([*(alert.expr for alert in ALERTS), *expressions()], exposed) == {}


def test_a_panel_over_a_metric_that_does_not_exist_is_found(exposed: set[str]) -> None:
    assert missing(["rate(potok_no_such_total[5m])"], exposed)


def test_every_metric_of_the_list_is_exposed(exposed: set[str]) -> None:
    # A jump of the stream time is rare; its series begin with the first.
    assert {family.name for family in FAMILIES} - exposed == {TIME_JUMPS.name}

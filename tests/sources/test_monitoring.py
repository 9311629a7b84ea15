"""Every record that a listener received is in one of its metrics."""

from __future__ import annotations

from pathlib import Path

from potok.monitoring.monitor import Monitor
from potok.sources.counters import Counts
from potok.sources.gateway import ListenerStatus
from potok.sources.monitoring import monitor_listeners
from tests.log.waiting import until
from tests.sources.datagrams.test_udp import receiving


def lines(monitor: Monitor) -> list[str]:
    return monitor.registry.expose().body.decode().splitlines()


def test_received_records_are_landed_lost_or_buffered(tmp_path: Path) -> None:
    monitor = Monitor()
    with receiving(tmp_path, max_datagram=10) as (gateway, sender):
        monitor_listeners(monitor, gateway.status)
        sender.send(b"0123456789")
        sender.send(b"0123456789A")
        until(lambda: gateway.counts("m").buffered == 0 and gateway.counts("m").received == 2)
        found = lines(monitor)
    assert 'potok_gateway_received_total{listener="m"} 2' in found
    assert 'potok_gateway_landed_total{listener="m"} 1' in found
    assert 'potok_gateway_lost_total{listener="m",reason="too_large"} 1' in found
    assert 'potok_gateway_lost_total{listener="m",reason="expired"} 0' in found
    assert 'potok_gateway_buffered_records{listener="m"} 0' in found
    assert 'potok_gateway_up{listener="m"} 1' in found


def test_a_listener_with_a_problem_is_down_and_not_ready() -> None:
    counts = Counts(5, 2, 1, {"expired": 1}, {"full": 3}, kernel_dropped=4, missing=6)
    status = ListenerStatus("m", "udp", "t", None, counts, None, "the log does not answer", {})
    monitor = Monitor()
    monitor_listeners(monitor, lambda: [status])
    found = lines(monitor)
    assert 'potok_gateway_up{listener="m"} 0' in found
    assert 'potok_gateway_lost_total{listener="m",reason="kernel_dropped"} 4' in found
    assert 'potok_gateway_lost_total{listener="m",reason="missing"} 6' in found
    assert 'potok_gateway_refused_total{listener="m",reason="full"} 3' in found
    assert [(each.reason, each.detail) for each in monitor.health.is_ready()] == [
        ("problem", "the log does not answer")
    ]
    assert monitor.health.is_live() == []

"""A StatsD listener, with the text that real clients send."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from potok.errors import TopologyError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources import Gateway, Overload, Statsd
from tests.log.waiting import until
from tests.sources.test_appender import values

DROPPING = Overload(when_full="drop_oldest", max_records=2_000)

PYTHON_CLIENT = b"shop.orders:1|c\nshop.latency:12.250000|ms\nshop.stock:42|g\nshop.stock:-3|g"
"""What the client `statsd` for Python sends from a pipeline."""

SAMPLED = b"shop.visits:1|c|@0.1"
"""What its `incr("visits", rate=0.1)` sends."""

NODE_CLIENT = b"api.requests:1|c\napi.size:1024|h\napi.users:u-17|s\n"


def spec(**options: object) -> Statsd:
    given = {"name": "m", "topic": "t", "listen": "127.0.0.1:0", "overload": DROPPING, **options}
    return Statsd(**given)  # type: ignore[arg-type]


def test_the_packets_of_clients_land_and_what_is_not_a_metric_becomes_a_dead_letter(tmp_path: Path) -> None:
    with (
        Gateway(EmbeddedBroker(tmp_path), [spec(dead_letters="dead")]) as gateway,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        host, _, port = gateway.address("m").rpartition(":")
        for packet in (PYTHON_CLIENT, SAMPLED, NODE_CLIENT, b"\x00\xff\n" + b"x" * 2_000, b"y" * 9_000):
            client.sendto(packet, (host, int(port)))
        until(lambda: gateway.counts("m").received == 11 and gateway.counts("m").buffered == 0)
        counts = gateway.counts("m")
        until(lambda: sum(gateway.broker.end_offsets("dead").values()) == 4)
    assert counts.lost == {"malformed": 3, "too_large": 1}
    found = [json.loads(value) for value in values(EmbeddedBroker(tmp_path))]
    assert [(each["type"], each["value"], each["rate"]) for each in found] == [
        ("c", 1, 1),
        ("ms", 12.25, 1),
        ("g", 42, 1),
        ("g", -3, 1),
        ("c", 1, 0.1),
        ("c", 1, 1),
        ("h", 1024, 1),
    ]
    assert b"api.users:u-17|s" in values(EmbeddedBroker(tmp_path), "dead")


def test_every_metric_of_a_flood_has_landed_or_is_counted(tmp_path: Path) -> None:
    with (
        Gateway(EmbeddedBroker(tmp_path), [spec(receive_buffer=8_192)]) as gateway,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        host, _, port = gateway.address("m").rpartition(":")
        client.connect((host, int(port)))
        sent = 0
        for number in range(30_000):
            client.send(b"n:%d|c" % number if number % 10 else b"bad")
            sent += 1

        def accounted() -> bool:
            # The kernel reports what it dropped with the next datagram.
            nonlocal sent
            client.send(b"end:1|c")
            sent += 1
            counts = gateway.counts("m")
            return counts.received + (counts.kernel_dropped or 0) == sent

        until(accounted)
        until(lambda: gateway.counts("m").buffered == 0)
        counts = gateway.counts("m")
        assert counts.received == counts.landed + sum(counts.lost.values())
        assert counts.landed == len(values(gateway.broker))


def test_a_policy_that_asks_senders_to_wait_is_refused() -> None:
    with pytest.raises(TopologyError, match="UDP has no flow control"):
        Gateway("memory:", [spec(overload=Overload(when_full="block"))])

"""Datagrams: each is a record, and each that is not is counted."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from potok.errors import PotokError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources import Gateway, Overload, Udp
from potok.sources.datagrams import receive
from tests.log.waiting import until
from tests.sources.test_appender import values

DROPPING = Overload(when_full="drop_newest")


@contextmanager
def receiving(path: Path, **options: Any) -> Iterator[tuple[Gateway, socket.socket]]:
    broker = EmbeddedBroker(path)
    spec = Udp(**{"name": "m", "topic": "t", "listen": "127.0.0.1:0", "overload": DROPPING} | options)
    with Gateway(broker, [spec]) as gateway, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        host, _, port = gateway.address("m").rpartition(":")
        sender.connect((host, int(port)))
        yield gateway, sender


def test_each_datagram_is_a_record(tmp_path: Path) -> None:
    with receiving(tmp_path) as (gateway, sender):
        for each in (b"one", b"two\nlines", b"x" * 8_192):
            sender.send(each)
        until(lambda: gateway.counts("m").landed == 3)
        assert values(gateway.broker) == [b"one", b"two\nlines", b"x" * 8_192]


def test_a_datagram_that_is_too_large_becomes_a_dead_letter(tmp_path: Path) -> None:
    with receiving(tmp_path, max_datagram=10, dead_letters="dead") as (gateway, sender):
        sender.send(b"0123456789")
        sender.send(b"0123456789A")
        until(lambda: gateway.counts("m").buffered == 0 and gateway.counts("m").received == 2)
        assert gateway.counts("m").lost == {"too_large": 1}
        until(lambda: sum(gateway.broker.end_offsets("dead").values()) == 1)
    [batch] = EmbeddedBroker(tmp_path).read("dead", 0, 0, 1)
    assert batch["value"].to_pylist() == [b"0123456789"]
    headers = {each["name"]: each["value"] for each in batch["headers"].to_pylist()[0]}
    assert headers == {
        "potok-reason": b"too_large: the datagram is larger than max_datagram",
        "potok-source": b"m",
    }


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel does not say what it drops")
@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest"])
def test_what_was_sent_in_a_flood_has_landed_or_is_counted(tmp_path: Path, policy: Any) -> None:
    sent = 60_000
    overload = Overload(when_full=policy, max_records=500)
    with receiving(tmp_path, receive_buffer=65_536, max_datagram=8, overload=overload) as (gateway, sender):
        for number in range(sent):
            sender.send(b"too large" if number % 10 == 0 else b"%d" % number)

        def counted() -> int:
            counts = gateway.counts("m")
            return counts.received + (counts.kernel_dropped or 0)

        # Nothing is sent after the flood, and still the kernel's drops become known.
        until(lambda: counted() == sent)
    counts = gateway.counts("m")
    assert counts.landed + sum(counts.lost.values()) + (counts.kernel_dropped or 0) == sent
    assert counts.kernel_dropped and counts.lost["too_large"]
    assert counts.landed == len(values(EmbeddedBroker(tmp_path)))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel does not say what it drops")
def test_what_the_kernel_has_received_when_the_gateway_stops_lands(tmp_path: Path) -> None:
    spec = Udp(name="m", topic="t", listen="127.0.0.1:0", overload=DROPPING)
    gateway = Gateway(EmbeddedBroker(tmp_path), [spec])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        host, _, port = gateway.address("m").rpartition(":")
        for _ in range(100):
            sender.sendto(b"x", (host, int(port)))
    # As if the gateway stopped before its thread was scheduled.
    gateway._running[0].listener._stopping.set()  # type: ignore[attr-defined]
    gateway.start()
    gateway.stop()
    assert values(EmbeddedBroker(tmp_path)) == [b"x"] * 100


def test_several_sockets_share_a_port(tmp_path: Path) -> None:
    with receiving(tmp_path, sockets=3) as (gateway, _):
        assert gateway.status()[0].state["sockets"] == 3
        host, _, port = gateway.address("m").rpartition(":")
        for number in range(40):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
                other.sendto(b"%d" % number, (host, int(port)))
        until(lambda: gateway.counts("m").landed == 40)


def test_a_multicast_group_is_joined(tmp_path: Path) -> None:
    with receiving(tmp_path, group="239.12.34.56") as (gateway, sender):
        port = int(gateway.address("m").rpartition(":")[2])
        sender.close()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            other.sendto(b"to all", ("239.12.34.56", port))
        until(lambda: gateway.counts("m").landed == 1)
        assert values(gateway.broker) == [b"to all"]


def test_the_receiver_of_other_systems_reads_one_by_one() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(10)
        reader = receive._OneByOne(opened, 4)
        for each in (b"abcd", b"abcde"):
            sender.sendto(each, opened.getsockname())
        assert reader.receive() == ([b"abcd"], [], None)
        assert reader.receive() == ([], [b"abcd"], None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"listen": "8125"}, '"8125" is not an address'),
        ({"listen": "256.0.0.1:1"}, "cannot listen on 256.0.0.1:1"),
        ({"group": "10.0.0.1"}, '"10.0.0.1" is not a multicast group'),
        ({"max_datagram": 0}, "max_datagram = 0 is out of range"),
        ({"sockets": 1_000}, "sockets = 1000 is out of range"),
        ({"dead_letters": "t"}, "writes dead letters to its own topic"),
    ],
)
def test_options_that_cannot_work_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    threads = threading.active_count()
    with pytest.raises(PotokError, match=message), receiving(tmp_path, **options):
        pass
    assert threading.active_count() == threads

"""Lines of TCP connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources import Gateway, Overload, TcpLines
from tests.log.waiting import until
from tests.sources.test_appender import AwayBroker, values


@contextmanager
def listening(broker: EmbeddedBroker, **options: Any) -> Iterator[tuple[Gateway, tuple[str, int]]]:
    spec = TcpLines(**{"name": "l", "topic": "t", "listen": "127.0.0.1:0"} | options)
    with Gateway(broker, [spec]) as gateway:
        host, _, port = gateway.address("l").rpartition(":")
        yield gateway, (host, int(port))


def test_each_line_is_a_record_however_it_is_cut(tmp_path: Path) -> None:
    with listening(EmbeddedBroker(tmp_path)) as (gateway, address):
        with socket.create_connection(address) as client:
            for piece in (b"on", b"e\r\ntwo\n\nth", b"ree\nlast without its end"):
                client.sendall(piece)
        until(lambda: gateway.counts("l").landed == 4)
        assert values(gateway.broker) == [b"one", b"two", b"three", b"last without its end"]


def test_a_line_that_is_too_long_is_counted_once_and_the_next_one_lands(tmp_path: Path) -> None:
    with listening(EmbeddedBroker(tmp_path), max_line=1_000) as (gateway, address):
        with socket.create_connection(address) as client:
            client.sendall(b"x" * 1_000_000 + b"\nshort\n" + b"y" * 1_001 + b"\nlast\n")
        until(lambda: gateway.counts("l").landed == 2)
        assert gateway.counts("l").lost == {"too_large": 2}
        assert values(gateway.broker) == [b"short", b"last"]


def test_a_full_buffer_slows_the_client_down_and_loses_nothing(tmp_path: Path) -> None:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    lines = [b"%06d" % number + b"x" * 1_000 for number in range(20_000)]
    done = threading.Event()

    def send(address: tuple[str, int]) -> None:
        with socket.create_connection(address) as client:
            client.sendall(b"\n".join(lines))
        done.set()

    with listening(broker, overload=Overload(max_records=100)) as (gateway, address):
        threading.Thread(target=send, args=(address,), daemon=True).start()
        broker.tried.wait(10)
        assert not done.wait(0.2)
        assert gateway.counts("l").buffered < 20_000
        broker.there.set()
        until(lambda: gateway.counts("l").landed == len(lines))
        assert values(broker) == lines
        assert gateway.counts("l").lost == {}


def test_lines_that_found_no_room_before_the_end_are_counted(tmp_path: Path) -> None:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    spec = TcpLines(name="l", topic="t", listen="127.0.0.1:0", overload=Overload(max_records=1))
    gateway = Gateway(broker, [spec], stop_timeout_s=0.1)
    gateway.start()
    host, _, port = gateway.address("l").rpartition(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"first\n")
        assert broker.tried.wait(10)
        client.sendall(b"second\nthird\n")
        until(lambda: gateway.status()[0].state["waiting"])
        gateway.stop()
    counts = gateway.counts("l")
    assert (counts.received, counts.landed, counts.lost) == (3, 0, {"stopped": 3})


def test_a_long_line_that_is_sent_byte_by_byte_is_counted_once(tmp_path: Path) -> None:
    with listening(EmbeddedBroker(tmp_path), max_line=500) as (gateway, address):
        with socket.create_connection(address) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(2_000):
                client.send(b"x")
            client.sendall(b"\nnext\r\n" + b"y" * 500 + b"\n" + b"z" * 501)
        until(lambda: gateway.counts("l").landed == 2)
        until(lambda: gateway.counts("l").lost == {"too_large": 2})
        assert values(gateway.broker) == [b"next", b"y" * 500]


def test_a_buffer_on_disk_takes_what_memory_would_not(tmp_path: Path) -> None:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    lines = [b"%06d" % number + b"x" * 1_000 for number in range(30_000)]
    overload = Overload(buffer="disk", max_bytes=1 << 30)
    with listening(broker, overload=overload) as (gateway, address):
        with socket.create_connection(address) as client:
            client.sendall(b"\n".join([*lines, b""]))
        until(lambda: gateway.counts("l").buffered == len(lines))
        broker.there.set()
        until(lambda: gateway.counts("l").landed == len(lines))
        assert values(broker) == lines


def test_connections_beyond_the_limit_are_closed_and_counted(tmp_path: Path) -> None:
    with (
        listening(EmbeddedBroker(tmp_path), max_connections=1) as (gateway, address),
        socket.create_connection(address),
    ):
        until(lambda: gateway.status()[0].state["connections"] == 1)
        with socket.create_connection(address) as second:
            assert second.recv(1) == b""
        assert gateway.counts("l").refused == {"too_many_connections": 1}


def test_a_client_that_resets_its_connection_leaves_the_others_alone(tmp_path: Path) -> None:
    with listening(EmbeddedBroker(tmp_path)) as (gateway, address), socket.create_connection(address) as other:
        with socket.create_connection(address) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            client.sendall(b"started")
        other.sendall(b"whole\n")
        until(lambda: gateway.counts("l").landed >= 1)
        assert b"whole" in values(gateway.broker)

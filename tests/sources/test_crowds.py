"""Thousands of connections at a time: those within the limit are served, and afterwards everybody is."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.sources import Gateway, TcpLines, Webhook
from tests.log.waiting import until
from tests.sources.test_appender import values

CROWD, LIMIT = 2_000, 100
FILES = 2 * CROWD + 500


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Allow both ends of all connections in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if wanted < FILES:
        pytest.skip("the system does not allow so many open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connections(stack: ExitStack, address: str, count: int) -> list[socket.socket]:
    host, _, port = address.rpartition(":")
    return [stack.enter_context(socket.create_connection((host, int(port)), timeout=30)) for _ in range(count)]


def test_requests_are_answered_again_after_a_crowd_of_silent_connections(tmp_path: Path) -> None:
    spec = Webhook(name="w", topic="t", listen="127.0.0.1:0", max_connections=LIMIT)
    with Gateway(EmbeddedBroker(tmp_path), [spec]) as gateway:
        url = f"http://{gateway.address('w')}/"
        with ExitStack() as stack:
            crowd = connections(stack, gateway.address("w"), CROWD)
            for each in crowd[::7]:
                each.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-le")
            until(lambda: gateway.status()[0].state["connections"] <= 1.25 * LIMIT + 1)
        until(lambda: gateway.status()[0].state["connections"] == 0)
        assert httpx.post(url, json=1, timeout=30).status_code == 202
        assert values(gateway.broker) == [b"1"]


def test_lines_of_connections_within_the_limit_land_and_the_others_are_closed_and_counted(tmp_path: Path) -> None:
    spec = TcpLines(name="l", topic="t", listen="127.0.0.1:0", max_connections=LIMIT)
    with Gateway(EmbeddedBroker(tmp_path), [spec]) as gateway:
        with ExitStack() as stack:
            first = connections(stack, gateway.address("l"), LIMIT)
            until(lambda: gateway.status()[0].state["connections"] == LIMIT)
            others = connections(stack, gateway.address("l"), CROWD - LIMIT)
            assert others[-1].recv(1) == b""
            for number, each in enumerate(first):
                each.sendall(b"%d\n" % number)
            until(lambda: gateway.counts("l").landed == LIMIT)
            until(lambda: gateway.counts("l").refused == {"too_many_connections": CROWD - LIMIT})
        until(lambda: gateway.status()[0].state["connections"] == 0)
        with ExitStack() as stack:
            [late] = connections(stack, gateway.address("l"), 1)
            late.sendall(b"late\n")
            until(lambda: gateway.counts("l").landed == LIMIT + 1)
    assert sorted(values(EmbeddedBroker(tmp_path))) == sorted([*(b"%d" % number for number in range(LIMIT)), b"late"])

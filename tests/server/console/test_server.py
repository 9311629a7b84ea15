from __future__ import annotations

import json
import socket
import urllib.request

import pytest

from potok.server.console.app import create_app
from potok.server.console.server import PortTaken, Server
from server.console.test_app import Small


def test_events_arrive_over_http_and_stopping_ends_them() -> None:
    with Server(create_app(Small(), interval=0.01), port=0) as server:
        answer = urllib.request.urlopen(f"{server.url}/api/live", timeout=10)
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [answer.readline() for _ in range(5)]
        assert lines[0] == b"retry: 1000\n"
        assert json.loads(lines[1].removeprefix(b"data: "))["history"]
        assert json.loads(lines[3].removeprefix(b"data: "))["lag"] == 3
    answer.read()
    with pytest.raises(OSError):
        urllib.request.urlopen(server.url, timeout=2)


def test_a_closed_browser_does_not_affect_the_others() -> None:
    with Server(create_app(Small(), interval=0.01), port=0) as server:
        gone = urllib.request.urlopen(f"{server.url}/api/live", timeout=10)
        stays = urllib.request.urlopen(f"{server.url}/api/live", timeout=10)
        gone.readline()
        gone.close()
        for _ in range(60):
            stays.readline()
        assert urllib.request.urlopen(f"{server.url}/api/snapshot", timeout=10).status == 200


def test_a_port_that_is_taken_is_refused_with_a_hint() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(PortTaken, match="--port"):
            Server(create_app(Small()), port=other.getsockname()[1])


def test_a_search_takes_the_next_port_that_is_free() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        server = Server(create_app(Small()), port=taken, search=True)
        try:
            assert taken < server.port <= taken + 20
        finally:
            server.stop()

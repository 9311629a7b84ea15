"""The work for a client that has left stops, whatever it speaks."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator

import httpx
import pytest
from websockets.sync.client import connect

from potok.server import pushes
from potok.server.access.limits import Limits
from potok.server.server import Server
from potok.sql import budget
from server.over_http2 import Http2Client
from server.test_availability import NEVER_ENDS, WAITS
from statements.playing import Play

LONG = f"SELECT {NEVER_ENDS} FROM orders;"


@pytest.fixture
def narrow(shop: Play) -> Iterator[Server]:
    """A server with one worker, which would work for ten minutes."""
    shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
    with Server(shop.database, port=0, limits=Limits(workers=1, seconds=600)) as server:
        yield server


Begun = Callable[[], bool]


def over_http1(server: Server, path: str, sql: str, started: Begun) -> None:
    body = json.dumps({"sql": sql, "ksql": sql}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        caller.sendall(head.encode() + body)
        while not started():
            pass


def with_another_behind_it(server: Server, path: str, sql: str, started: Begun) -> None:
    body = json.dumps({"sql": sql, "ksql": sql}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        caller.sendall(head.encode() + body + b"GET /info HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        while not started():
            pass


def over_http2(server: Server, path: str, sql: str, started: Begun) -> None:
    with Http2Client(server.port) as client:
        stream = client.ask(path, "POST", body=json.dumps({"sql": sql, "ksql": sql}).encode())
        while not started():
            pass
        client.connection.reset_stream(stream)
        client.flush()
        assert client.get("/info").status == 200


def over_a_web_socket(server: Server, _path: str, sql: str, started: Begun) -> None:
    asked = str(httpx.QueryParams({"request": json.dumps({"ksql": sql})}))
    with connect(f"ws://127.0.0.1:{server.port}/ws/query?{asked}", open_timeout=60) as caller:
        caller.send("hello")
        while not started():
            pass


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each work in threads that began was stopped because nobody waited for it."""
    found: list[bool] = []
    until = budget.until

    def watched(*given: object) -> object:
        found.append(False)
        place = len(found) - 1
        try:
            return until(*given)  # type: ignore[arg-type]
        except budget.NobodyWaits:
            found[place] = True
            raise

    monkeypatch.setattr("potok.server.access.work.until", watched)
    monkeypatch.setattr(pushes, "until", watched)
    return found


@pytest.mark.parametrize("asks", [over_http1, with_another_behind_it, over_http2, over_a_web_socket])
def test_a_worker_is_free_soon_after_its_client_has_left(
    narrow: Server, stopped: list[bool], asks: Callable[..., None]
) -> None:
    # The first work of a request reads its statement, the second one computes.
    asks(narrow, "/query", LONG, lambda: len(stopped) > 1)
    with httpx.Client(base_url=narrow.url, timeout=60) as client:
        assert client.post("/sql", json={"sql": "SHOW STREAMS;"}).status_code == 200
    assert stopped[:2] == [False, True]


@pytest.mark.parametrize("path", ["/sql", "/ksql"])
def test_a_wait_ends_when_its_client_has_left(narrow: Server, stopped: list[bool], path: str) -> None:
    over_http1(narrow, path, WAITS, lambda: len(stopped) > 1)
    with httpx.Client(base_url=narrow.url, timeout=60) as client:
        assert client.post("/sql", json={"sql": WAITS.replace("1 HOUR", "0 SECONDS")}).status_code == 400
    assert any(stopped)


def test_a_request_whose_client_has_left_before_its_turn_is_not_started(narrow: Server, stopped: list[bool]) -> None:
    with socket.create_connection(("127.0.0.1", narrow.port), timeout=60) as first:
        body = json.dumps({"sql": LONG}).encode()
        first.sendall(b"POST /sql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        while len(stopped) < 2:
            pass
        for _ in range(3):
            over_http1(narrow, "/sql", LONG, lambda: True)
    with httpx.Client(base_url=narrow.url, timeout=60) as client:
        assert client.post("/sql", json={"sql": "SHOW STREAMS;"}).status_code == 200
    assert len(stopped) <= 3 + 3 + 2

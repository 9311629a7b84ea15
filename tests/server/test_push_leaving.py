"""The work of a push query or a feed stops when its client leaves, whichever protocol it uses."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

import potok
from faults.drive import wait_until
from potok.server import pushes
from potok.server.access.limits import Limits
from potok.server.api.feeds import Feed
from potok.server.server import Server
from potok.sql import budget
from server.over_http2 import Http2Client
from server.test_availability import NEVER_ENDS
from statements.playing import Play

FEED = "/streams/orders?from=beginning"
TIMEOUT_S = 60

Asks = Callable[[Server, str, bytes | None], Any]


class Work:
    """What the threads of push queries do: `has_begun` to compute rows, `stopped` because nobody waits for them."""

    def __init__(self) -> None:
        self.has_begun, self.stopped = threading.Event(), threading.Event()

    def until(self, *given: Any) -> Any:
        try:
            return budget.until(*given)
        except budget.NobodyWaits:
            self.stopped.set()
            raise


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    found = Work()

    @potok.function
    def has_begun(text: str) -> str:
        found.has_begun.set()
        return text

    monkeypatch.setattr(pushes, "until", found.until)
    monkeypatch.setattr(pushes, "TAKE_S", 600)
    return found


@pytest.fixture
def server(shop: Play) -> Iterator[Server]:
    shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
    with Server(shop.database, port=0, limits=Limits(workers=1, seconds=600)) as found:
        yield found


@contextmanager
def over_http1(server: Server, path: str, body: bytes | None) -> Iterator[None]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) as caller:
        method = "GET" if body is None else "POST"
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body or b'')}\r\n\r\n"
        caller.sendall(head.encode() + (body or b""))
        yield


@contextmanager
def over_http1_with_another_request_behind(server: Server, path: str, body: bytes | None) -> Iterator[None]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) as caller:
        method = "GET" if body is None else "POST"
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body or b'')}\r\n\r\n"
        caller.sendall(head.encode() + (body or b"") + b"GET /info HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        yield


@contextmanager
def over_http2(server: Server, path: str, body: bytes | None) -> Iterator[None]:
    with Http2Client(server.port) as client:
        client.ask(path, "GET" if body is None else "POST", body=body)
        yield


@contextmanager
def over_http2_with_a_reset(server: Server, path: str, body: bytes | None) -> Iterator[None]:
    client = Http2Client(server.port)
    stream = client.ask(path, "GET" if body is None else "POST", body=body)
    yield
    client.connection.reset_stream(stream)
    client.flush()
    assert client.get("/info").status == 200


@contextmanager
def over_a_web_socket(server: Server, path: str, body: bytes | None) -> Iterator[None]:
    address = path
    if body is not None:
        given = json.loads(body)
        asked = {"request": json.dumps({"ksql": given["sql"], "properties": given["properties"]})}
        address = f"/ws/query?{httpx.QueryParams(asked)}"
    with connect(f"ws://127.0.0.1:{server.port}{address}", open_timeout=TIMEOUT_S):
        yield


EVERY = [over_http1, over_http1_with_another_request_behind, over_http2, over_http2_with_a_reset, over_a_web_socket]


@pytest.mark.parametrize("asks", EVERY, ids=lambda asks: asks.__name__)
def test_a_push_query_stops_computing_when_its_client_has_left(server: Server, work: Work, asks: Asks) -> None:
    sql = f"SELECT HAS_BEGUN(id) AS a, {NEVER_ENDS} AS b FROM orders EMIT CHANGES;"
    body = json.dumps({"sql": sql, "properties": {"auto.offset.reset": "earliest"}}).encode()
    with asks(server, "/query-stream", body):
        assert work.has_begun.wait(TIMEOUT_S)
    assert work.stopped.wait(TIMEOUT_S)
    wait_until(lambda: server.app.state.site.pushes._taken == 0, "its place is given back", TIMEOUT_S)
    assert server.app.state.site.pushes.ids == []


@pytest.mark.parametrize("asks", EVERY, ids=lambda asks: asks.__name__)
def test_a_feed_stops_when_its_client_has_left(
    server: Server, work: Work, monkeypatch: pytest.MonkeyPatch, asks: Asks
) -> None:
    def take(_feed: Feed) -> None:
        work.has_begun.set()
        while True:
            budget.check_time()

    monkeypatch.setattr(Feed, "take", take)
    with asks(server, FEED, None):
        assert work.has_begun.wait(TIMEOUT_S)
    assert work.stopped.wait(TIMEOUT_S)
    wait_until(lambda: server.app.state.site.pushes._taken == 0, "its place is given back", TIMEOUT_S)
    assert not server.app.state.site.feeds


def test_a_push_query_whose_client_leaves_while_it_is_opened_is_closed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens, left = threading.Event(), threading.Event()
    work = server.app.state.site.work
    run = work.run

    def late(*given: Any) -> Any:
        opens.set()
        assert left.wait(TIMEOUT_S)
        return run(*given)

    monkeypatch.setattr(work, "run", late)
    with over_http1(server, "/query-stream", b'{"sql": "SELECT * FROM orders EMIT CHANGES;"}'):
        assert opens.wait(TIMEOUT_S)
    left.set()
    wait_until(lambda: server.app.state.site.pushes._taken == 0, "its place is given back", TIMEOUT_S)
    assert server.app.state.site.pushes.ids == []

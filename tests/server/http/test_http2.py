"""HTTP/2 as clients of ksqlDB speak it: the same answers, within the windows of the client."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from h2.errors import ErrorCodes

from potok.server.access.limits import Limits
from potok.server.http import connections
from potok.server.http.http2 import IDLE_FRAMES, STREAMS
from potok.server.server import Server
from server.conftest import sell
from server.over_http2 import Answer, Http2Client
from server.test_pages import Echo, Raising, Said
from statements.playing import Play

PUSHED = json.dumps({"sql": "SELECT * FROM orders EMIT CHANGES;"}).encode()


class Large(Echo):
    async def respond(self, method: str, path: str, **asked: Any) -> Said:
        return Said(b"x" * 1_000_000)


@contextmanager
def served(play: Play, *pages: Any, **options: Any) -> Iterator[Server]:
    with Server(play.database, port=0, pages=pages, **options) as server:
        yield server


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/users/a%2Fb%20c/?x=1&x=2", None),
        ("POST", "/users/ann/", b"hello"),
        ("POST", "/users/ann/", b""),
        ("HEAD", "/users/ann/", None),
        ("GET", "/users/ann", None),
        ("DELETE", "/users/ann/", None),
        ("GET", "/raises/", None),
        ("GET", "/nothing/here", None),
        ("GET", "/tables", None),
        ("POST", "/sql", b'{"sql": "SHOW STREAMS;"}'),
        ("POST", "/sql", b"no json"),
        ("GET", "/info", None),
    ],
)
def test_an_answer_is_the_same_over_both_protocols(shop: Play, method: str, path: str, body: bytes | None) -> None:
    pages = (Echo("/users/{name}/", "GET", "POST"), Raising("/raises/"))
    with served(shop, *pages) as server, Http2Client(server.port) as client:
        new = client.get(path, method, body=body)
        with httpx.Client(base_url=server.url, timeout=60) as old_client:
            old = old_client.request(method, path, content=body)
        assert (new.status, new.body) == (old.status_code, old.content)
        left_out = {"date", "connection", "content-length", "transfer-encoding"}
        assert {n: v for n, v in new.headers.items() if n not in left_out} == {
            name: value for name, value in old.headers.items() if name not in left_out
        }


def test_a_feed_is_read_without_a_body(server: Server, shop: Play) -> None:
    sell(shop, ("o1", "u1", 1.0))
    with Http2Client(server.port) as client:
        stream = client.ask("/streams/orders?from=beginning")
        client.until(lambda: b'"o1"' in client.answers[stream].body)
        assert client.answers[stream].headers["content-type"] == "text/event-stream"
        client.connection.reset_stream(stream)
        client.flush()
        assert client.get("/info").status == 200


def test_a_push_query_sends_rows_until_its_client_resets_it(server: Server, shop: Play) -> None:
    with Http2Client(server.port) as client:
        stream = client.ask("/query-stream", "POST", body=PUSHED)
        client.until(lambda: b"queryId" in client.answers[stream].body)
        sell(shop, ("o1", "u1", 1.0))
        client.until(lambda: b'"o1"' in client.answers[stream].body)
        client.connection.reset_stream(stream)
        client.flush()
        site = server.app.state.site
        while site.pushes.ids:
            assert client.get("/info").status == 200
        assert site.pushes.ids == []


def test_an_answer_waits_for_the_window_of_the_client(play: Play) -> None:
    with served(play, Large("/large/")) as server, Http2Client(server.port) as client:
        stream = client.ask("/large/")
        client.until(lambda: len(client.answers[stream].body) >= 65_535, accept=False)
        assert len(client.answers[stream].body) == 65_535
        other = client.ask("/info")
        client.until(lambda: client.answers[other].status > 0, accept=False)
        assert len(client.answers[stream].body) == 65_535
        client.connection.increment_flow_control_window(2_000_000, stream)
        client.connection.increment_flow_control_window(2_000_000)
        client.flush()
        client.until(lambda: client.answers[stream].is_whole)
        assert client.answers[stream].body == b"x" * 1_000_000


def test_a_client_whose_window_stays_shut_is_not_waited_for(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALL_S", 0.05)
    with served(play, Large("/large/")) as server, Http2Client(server.port) as client:
        stream = client.ask("/large/")
        client.until(lambda: client.answers[stream].reset is not None, accept=False)
        assert client.answers[stream].reset == ErrorCodes.CANCEL
        assert len(client.answers[stream].body) == 65_535


def test_pings_do_not_keep_an_idle_connection(play: Play) -> None:
    with served(play) as server:
        server._server.config.timeout_keep_alive = 0.2  # type: ignore[assignment]
        with Http2Client(server.port) as client:
            for number in range(IDLE_FRAMES - 100):
                if client.went_away is not None:
                    break
                client.connection.ping(b"12345678")
                client.flush()
                client.until(lambda: client.pings > number or client.went_away is not None)
            client.until(lambda: False)
            assert client.went_away == ErrorCodes.NO_ERROR


def test_a_connection_with_a_request_under_way_is_not_idle(server: Server, shop: Play) -> None:
    server._server.config.timeout_keep_alive = 0  # type: ignore[assignment]
    with Http2Client(server.port) as client:
        stream = client.ask("/streams/orders")
        client.until(lambda: b"retry" in client.answers[stream].body)
        sell(shop, ("o1", "u1", 1.0))
        client.until(lambda: b'"o1"' in client.answers[stream].body)


def test_oversized_request_heads_are_refused_and_the_connection_stays_open(server: Server) -> None:
    with Http2Client(server.port) as client:
        many = tuple((f"x-{number}", "y" * 100) for number in range(700))
        assert client.get("/info", headers=many).status == 431
        assert client.get("/info").status == 200


def test_heads_without_end_cost_the_connection(server: Server) -> None:
    with Http2Client(server.port) as client:
        many = tuple((f"x-{number}", "y" * 1_000) for number in range(400))
        client.get("/info", headers=many)
        assert client.is_over
    with Http2Client(server.port) as client:
        assert client.get("/info").status == 200


def test_no_more_requests_run_for_a_connection_than_are_allowed(server: Server, shop: Play) -> None:
    with Http2Client(server.port) as client:
        streams = [client.ask("/streams/orders") for _ in range(STREAMS)]
        client.until(lambda: all(client.answers[stream].body for stream in streams))
        assert len(server.app.state.site.feeds) == STREAMS


def test_requests_that_are_given_up_at_once_end_the_connection(server: Server) -> None:
    with Http2Client(server.port) as client:
        head = [(":method", "GET"), (":path", "/streams/orders"), (":scheme", "http"), (":authority", "127.0.0.1")]
        try:
            for _ in range(3 * IDLE_FRAMES):
                stream = client.connection.get_next_available_stream_id()
                head = [
                    (":method", "GET"),
                    (":path", "/streams/orders"),
                    (":scheme", "http"),
                    (":authority", "127.0.0.1"),
                ]
                client.connection.send_headers(stream, head, end_stream=True)
                client.connection.reset_stream(stream)
                client.answers[stream] = Answer()
                client.flush()
            client.until(lambda: False)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert len(server.app.state.site.feeds) <= STREAMS
    with Http2Client(server.port) as client:
        assert client.get("/info").status == 200


def test_frames_that_ask_for_nothing_end_the_connection(server: Server) -> None:
    with Http2Client(server.port) as client:
        for _ in range(3 * IDLE_FRAMES):
            client.connection.ping(b"12345678")
            client.flush()
        client.until(lambda: False)
        assert client.is_over
        assert client.went_away in (None, ErrorCodes.ENHANCE_YOUR_CALM)


def test_an_unread_request_body_is_not_waited_for(shop: Play) -> None:
    limits = Limits(body_bytes=100_000)
    with served(shop, limits=limits) as server, Http2Client(server.port) as client:
        stream = client.connection.get_next_available_stream_id()
        head = [
            (":method", "POST"),
            (":path", "/sql"),
            (":scheme", "http"),
            (":authority", f"127.0.0.1:{server.port}"),
            ("content-length", "500000"),
        ]
        client.connection.send_headers(stream, head)
        client.connection.send_data(stream, b"x" * 10_000)
        client.answers[stream] = Answer()
        client.flush()
        client.until(lambda: client.answers[stream].reset is not None)
        assert (client.answers[stream].status, client.answers[stream].reset) == (413, ErrorCodes.NO_ERROR)
        assert client.get("/info").status == 200


def test_bytes_that_are_not_frames_end_their_connection(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
        caller.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100)
        while caller.recv(65_536):
            pass
    with Http2Client(server.port) as client:
        assert client.get("/info").status == 200

"""Clients that send without end, or that never come to one, are cut off and keep nothing."""

from __future__ import annotations

import json
import select
import socket
import struct

import httpx
import pytest

from potok.server.access.limits import Limits
from potok.server.http.http1 import QUEUED
from potok.server.http.web_socket import FRAMES
from potok.server.server import Server
from server.over_http2 import Http2Client
from statements.playing import Play

UPGRADE = (
    b"GET /streams/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)
INFO = b"GET /info HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
FINAL = 0x80
CONTINUATION, TEXT, PING = 0, 1, 9


def frame(first: int, payload: bytes = b"") -> bytes:
    """A frame as a client sends it, masked with zeros."""
    return struct.pack("!BB4x", first, 0x80 | len(payload)) + payload


def upgraded(server: Server) -> socket.socket:
    caller = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    caller.sendall(UPGRADE)
    assert b" 101 " in caller.recv(65_536)
    return caller


def is_cut_off(caller: socket.socket) -> bool:
    """Whether the connection ends; what is sent before is read."""
    try:
        while caller.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.mark.parametrize(
    "frames",
    [
        [frame(FINAL | PING, b"x" * 100)],
        [frame(TEXT, b"a"), *[frame(CONTINUATION)] * 50],
        [frame(FINAL | TEXT, b"a")],
    ],
    ids=["pings", "fragments", "messages"],
)
def test_a_web_socket_that_sends_frame_after_frame_is_cut_off(server: Server, frames: list[bytes]) -> None:
    begin, *rest = frames
    with upgraded(server) as caller:
        try:
            caller.sendall(begin)
            for _ in range(5 * FRAMES):
                caller.sendall(b"".join(rest) or begin)
        except (ConnectionResetError, BrokenPipeError):
            return
        assert is_cut_off(caller)


def test_incoming_web_socket_messages_are_discarded_and_the_feed_continues(server: Server, shop: Play) -> None:
    with upgraded(server) as caller:
        for _ in range(100):
            caller.sendall(frame(FINAL | TEXT, b"x" * 100))
        caller.sendall(frame(FINAL | PING, b"there?"))
        while b"there?" not in caller.recv(65_536):
            pass
        shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
        while b'"o1"' not in caller.recv(65_536):
            pass


def test_requests_that_wait_behind_another_are_few(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
        caller.sendall(INFO * QUEUED)
        answers = b""
        while answers.count(b"KsqlServerInfo") < QUEUED:
            answers += caller.recv(65_536)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
        caller.sendall(b"GET /streams/orders HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + INFO * 2_000)
        assert is_cut_off(caller)
    while server.app.state.site.feeds:
        assert httpx.get(f"{server.url}/info").status_code == 200


def test_both_protocols_refuse_excess_connections_with_the_same_message(shop: Play) -> None:
    with Server(shop.database, port=0, limits=Limits(connections=2)) as server:
        with socket.create_connection(("127.0.0.1", server.port)), Http2Client(server.port) as new:
            old = httpx.get(f"{server.url}/tables")
            answer = new.get("/tables")
        assert (old.status_code, old.headers["retry-after"], old.json()["type"]) == (503, "1", "urn:potok:busy")
        assert (answer.status, answer.headers["retry-after"], json.loads(answer.body)) == (503, "1", old.json())


def test_connections_far_beyond_the_limit_are_closed_at_once(shop: Play) -> None:
    with Server(shop.database, port=0, limits=Limits(connections=8)) as server:
        callers = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(20)]
        assert is_cut_off(callers[-1])
        assert len(server._server.server_state.connections) <= 11
        for caller in callers:
            caller.close()


def test_a_body_that_comes_byte_by_byte_is_not_waited_for(shop: Play) -> None:
    head = b"POST /sql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n"
    with (
        Server(shop.database, port=0, limits=Limits(seconds=0.3)) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller,
    ):
        caller.sendall(head)
        for _ in range(500):
            if select.select([caller], [], [], 0.02)[0]:
                break
            caller.sendall(b" ")
        assert caller.recv(65_536).startswith(b"HTTP/1.1 400 ")


def test_a_body_of_nothing_but_arrays_is_refused_before_it_is_read(server: Server) -> None:
    body = b'{"sql": "SHOW STREAMS;", "x": [' + b"[]," * 300_000 + b"[]]}"
    for path in ("/sql", "/ksql", "/query", "/close-query"):
        refused = httpx.post(f"{server.url}{path}", content=body, timeout=60)
        assert (refused.status_code, "arrays and objects" in refused.text) == (400, True)


def test_what_cannot_be_parsed_is_not_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
        caller.sendall(b"NO HTTP\r\n\r\n")
        assert caller.recv(65_536).startswith(b"HTTP/1.1 400 ")
    assert not caplog.records

"""What the server holds for its clients is bounded, for each of them and for all together."""

from __future__ import annotations

import itertools
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from potok.server.access.held_bytes import HeldBytes, Holding
from potok.server.access.limits import Limits
from potok.server.answers import STEP, AnswerSize
from potok.server.errors import Busy
from potok.server.server import Server
from potok.sql.budget import NobodyWaits
from server.over_http2 import Answer, Http2Client
from statements.playing import Play

MB = 1 << 20
LARGE = "SELECT RPAD(id, 15000000, id) FROM orders;"
HEAD = "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n"


@contextmanager
def served(play: Play, **limits: Any) -> Iterator[tuple[Server, httpx.Client]]:
    with (
        Server(play.database, port=0, limits=Limits(**limits)) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        yield server, client


@contextmanager
def never_reads(server: Server, protocol: str) -> Iterator[None]:
    """A client that asks for 15 MB and takes none of it but what the system takes for it."""
    body = json.dumps({"sql": LARGE}).encode()
    if protocol == "HTTP/2":
        with Http2Client(server.port) as client:
            stream = client.ask("/sql", "POST", body=body)
            client.until(lambda: client.answers[stream].status > 0, accept=False)
            yield
        return
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        caller.settimeout(60)
        caller.connect(("127.0.0.1", server.port))
        caller.sendall(HEAD.format(path="/sql", length=len(body)).encode() + body)
        assert caller.recv(1)
        yield


def test_bytes_count_for_all_and_for_each_connection() -> None:
    held = HeldBytes(100, 60)
    one, same, other = Holding(held, "one"), Holding(held, "one"), Holding(held, "other")
    one.take(40)
    with pytest.raises(Busy):
        same.take(30)
    same.take(20)
    with pytest.raises(Busy):
        other.take(50)
    other.take(40)
    assert held.total == 100
    one.give_back(10)
    one.give_back()
    assert (one.size, held.total) == (0, 60)
    same.give_back()
    other.give_back()
    assert (held.total, dict(held._of)) == (0, {})


@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])
def test_unread_responses_have_a_common_limit_beyond_which_requests_are_refused(shop: Play, protocol: str) -> None:
    shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
    with served(shop, answer_bytes=20 * MB, unsent_bytes=30 * MB) as (server, client), ExitStack() as slow:
        unsent = server.app.state.site.unsent
        for _ in range(2):
            slow.enter_context(never_reads(server, protocol))
        refused = client.post("/sql", json={"sql": LARGE})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["type"] == "urn:potok:busy"
        assert client.post("/query", json={"ksql": LARGE}).json()["error_code"] == 50300
        assert unsent.total <= 30 * MB
        assert client.post("/sql", json={"sql": "SELECT * FROM orders;"}).status_code == 200
        slow.close()
        while (found := client.post("/sql", json={"sql": LARGE})).status_code == 503:
            pass
        assert (found.status_code, len(found.json()["results"][0]["rows"][0][0])) == (200, 15_000_000)
        assert unsent.total == 0


def test_an_answer_over_a_web_socket_counts_until_it_is_taken(shop: Play) -> None:
    shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
    asked = json.dumps({"ksql": LARGE}).replace(" ", "%20")
    with served(shop, answer_bytes=20 * MB, unsent_bytes=30 * MB) as (server, _):
        address, unsent = f"ws://127.0.0.1:{server.port}/ws/query?request={asked}", server.app.state.site.unsent
        with connect(address, max_size=None) as reader:
            assert json.loads(reader.recv())[0]["name"]
            assert len(json.loads(reader.recv())["row"]["columns"][0]) == 15_000_000
        unsent.total += 25 * MB
        with connect(address, max_size=None) as reader, pytest.raises(ConnectionClosed) as closed:
            reader.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1013
        unsent.total -= 25 * MB
        assert unsent.total == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/sql", {"sql": LARGE}),
        ("/sql", {"sql": "SELECT RPAD(id, 100000, id) FROM orders;" * 20}),
        ("/ksql", {"ksql": "SHOW FUNCTIONS;" * 200}),
        ("/query", {"ksql": LARGE}),
        ("/query-stream", {"sql": LARGE}),
    ],
)
def test_an_answer_is_as_large_as_it_may_be_and_no_larger(shop: Play, path: str, body: Any) -> None:
    shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
    with served(shop, answer_bytes=MB) as (_, client):
        found = client.post(path, json=body)
        assert found.status_code == 400
        assert "the response has more than 1,048,576 bytes" in found.text


def test_a_push_query_whose_rows_find_no_room_is_ended_with_the_reason(shop: Play) -> None:
    shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
    body = {"sql": LARGE.replace(";", " EMIT CHANGES;"), "properties": {"auto.offset.reset": "earliest"}}
    with served(shop) as (server, client):
        unsent = server.app.state.site.unsent
        unsent.total += unsent.most - MB
        found = client.post("/query-stream", json=body)
        assert json.loads(found.text.splitlines()[-1])["error_code"] == 50300
        unsent.total -= unsent.most - MB
        with client.stream("POST", "/query-stream", json=body) as rows:
            lines = rows.iter_lines()
            next(lines)
            assert len(next(lines)) > 15_000_000
        while server.app.state.site.pushes.ids:
            assert client.get("/info").status_code == 200
        assert unsent.total == 0


def begin_line(server: Server, size: int) -> socket.socket:
    """A connection that has named its stream and sent so much of its first row."""
    caller = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    head = b"POST /inserts-stream HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 90000000\r\n\r\n"
    caller.sendall(head + b'{"target": "orders"}\n{"id": "' + b"x" * size)
    return caller


def test_unfinished_lines_count_for_all_connections_together(shop: Play) -> None:
    with served(shop, body_bytes=MB, bodies_bytes=2 * MB) as (server, client), ExitStack() as slow:
        bodies = server.app.state.site.bodies
        for _ in range(2):
            slow.enter_context(begin_line(server, 900_000))
        while bodies.total < 1_800_000:
            assert client.get("/info").status_code == 200
        refused = client.post("/inserts-stream", content=b'{"target": "orders"}\n{"id": "' + b"y" * 900_000)
        assert refused.status_code == 503 or "50300" in refused.text.splitlines()[-1]
        slow.close()
        while bodies.total:
            assert client.get("/info").status_code == 200
        rows = b'{"target": "orders"}\n{"id": "' + b"y" * 900_000 + b'"}\n'
        assert json.loads(client.post("/inserts-stream", content=rows).text)["status"] == "ok"


def test_unfinished_lines_count_for_all_requests_of_a_connection(shop: Play) -> None:
    with served(shop, body_bytes=50_000, connection_bytes=100_000) as (server, _), Http2Client(server.port) as client:
        refused, count, sent = "", 0, 0
        while not refused and count < 10:
            stream, count = client.connection.get_next_available_stream_id(), count + 1
            authority = f"127.0.0.1:{server.port}"
            path = [(":method", "POST"), (":path", "/inserts-stream"), (":scheme", "http"), (":authority", authority)]
            answer = client.answers[stream] = Answer()
            client.connection.send_headers(stream, path)
            client.connection.send_data(stream, b'{"target": "orders"}\n{"id": "')
            for _ in range(4):
                client.flush()
                assert client.get("/info").status == 200
                if answer.status and not answer.is_whole:
                    client.connection.send_data(stream, b"x" * 10_000)
                    sent += 10_000
            client.flush()
            assert client.get("/info").status == 200
            refused = answer.body.decode()
        assert "50300" in refused
        assert 90_000 <= sent <= 110_000


def test_rows_that_stream_in_count_until_they_are_inserted(shop: Play) -> None:
    with served(shop, body_bytes=100_000, bodies_bytes=MB) as (server, client):
        line = json.dumps({"id": "x" * 50_000}).encode() + b"\n"
        rows = iter([b'{"target": "orders"}\n', *[line] * 60])
        acks = client.post("/inserts-stream", content=rows).text.splitlines()
        assert [json.loads(ack)["status"] for ack in acks] == ["ok"] * 60
        assert server.app.state.site.bodies.total == 0


def test_bytes_of_a_request_that_has_ended_cannot_be_taken_by_a_thread_that_still_works_for_it() -> None:
    held = HeldBytes(100, 100)
    holding = Holding(held, "one")
    holding.take(40)
    holding.close()
    with pytest.raises(NobodyWaits):
        holding.take(1)
    assert (held.total, holding.size) == (0, 0)


def test_an_answer_counts_while_it_is_encoded_and_is_stopped_where_all_answers_are_too_large() -> None:
    held = HeldBytes(3 * MB, 3 * MB)
    one, other = (AnswerSize(2 * MB, Holding(held, name)) for name in ("one", "other"))
    piece = bytes(100_000)
    for _ in range(20):
        one.add(piece)
    assert one.size - STEP < held.total <= one.size
    with pytest.raises(Busy):
        other.array(itertools.repeat(piece, 20))
    assert held.total <= 3 * MB


@pytest.mark.parametrize("path", ["/sql", "/query", "/query-stream"])
def test_answers_that_are_encoded_at_the_same_time_share_the_limit(
    shop: Play, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the event loop takes to send them: it is kept waiting until all but one are encoded."""
    shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
    most, started, counted = 40 * MB, threading.Barrier(6, timeout=60), list[int]()
    waited = set[AnswerSize]()
    add = AnswerSize.add

    def together(size: AnswerSize, data: bytes) -> bytes:
        if size not in waited:
            waited.add(size)
            started.wait()
        found = add(size, data)
        counted.append(size._holding._held.total)
        return found

    monkeypatch.setattr(AnswerSize, "add", together)
    name = "ksql" if path == "/query" else "sql"
    with served(shop, answer_bytes=20 * MB, unsent_bytes=most, workers=6) as (server, client):
        with ThreadPoolExecutor(6) as callers:
            asked = [callers.submit(client.post, path, json={name: LARGE}) for _ in range(6)]
            found = [one.result().status_code for one in asked]
        assert sorted(set(found)) == [200, 503]
        assert found.count(200) >= 2
        assert max(counted) <= most
        assert server.app.state.site.unsent.total == 0

"""No request takes so much of the server that others go without."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from limited import run_limited
from potok.server.access import work as works
from potok.server.access.limits import Limits
from potok.server.http import connections
from potok.server.http.connections import HEAD_BYTES
from potok.server.ksql.row_formats import KsqlRows
from potok.server.server import Server
from statements.playing import Play

WAITS = "ASSERT TOPIC 'never' TIMEOUT 1 HOUR;"
LONG = "GENERATE_SERIES(1, 100000)"
NEVER_ENDS = f"REDUCE({LONG}, 5e-1, (s, x) => REDUCE({LONG}, s, (t, y) => t + y))"
HEAD = b"Host: 127.0.0.1\r\n"


@contextmanager
def served(play: Play, **limits: Any) -> Iterator[httpx.Client]:
    with (
        Server(play.database, port=0, limits=Limits(**limits)) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        yield client


def answer_to(server: Server, *pieces: bytes) -> bytes:
    """What the server says to bytes that come one piece after the other."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
        try:
            for piece in pieces:
                caller.sendall(piece)
            return caller.recv(65_536)
        except (ConnectionResetError, BrokenPipeError):
            return b""


@pytest.mark.parametrize(
    "head",
    [
        b"GET /info HTTP/1.1\r\n" + HEAD + b"X: " + b"y" * HEAD_BYTES + b"\r\n\r\n",
        b"GET /info HTTP/1.1\r\n" + HEAD + b"a: b\r\n" * (HEAD_BYTES // 4) + b"\r\n",
        b"GET /" + b"y" * HEAD_BYTES + b" HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"GET /info HTTP/1.1\r\n" + HEAD + b"X: " + b"y" * (2 << 20),
        b"GET /" + b"y" * (2 << 20),
    ],
    ids=["a header", "many headers", "an address", "a header without end", "an address without end"],
)
def test_a_head_beyond_the_limit_is_refused_before_anybody_is_asked_who_they_are(server: Server, head: bytes) -> None:
    pieces = [head[at : at + 10_000] for at in range(0, len(head), 10_000)]
    for found in (answer_to(server, head), answer_to(server, *pieces)):
        assert found.startswith(b"HTTP/1.1 431 ") or found == b""
    assert answer_to(server, head[:60_000]) == b"" or len(head) > 60_000


def test_a_head_up_to_the_limit_is_read_whatever_comes_behind_it(server: Server) -> None:
    body = b'{"sql": "SHOW STREAMS;"}' + b" " * 500_000
    head = b"POST /sql HTTP/1.1\r\n" + HEAD + b"X: " + b"y" * (HEAD_BYTES - 300) + b"\r\n"
    whole = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    pieces = [whole[:30_000], whole[30_000:40_000], whole[40_000:]]
    assert answer_to(server, *pieces).startswith(b"HTTP/1.1 200 ")
    assert answer_to(server, whole).startswith(b"HTTP/1.1 200 ")


def test_trailers_without_end_are_refused(server: Server) -> None:
    started = b"POST /sql HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"
    answer_to(server, started + b"a: b\r\n" * 100_000)
    assert answer_to(server, b"GET /info HTTP/1.1\r\n" + HEAD + b"\r\n").startswith(b"HTTP/1.1 200 ")


def test_waiting_for_a_topic_does_not_block_others(shop: Play) -> None:
    with served(shop, seconds=1.0, workers=2) as client, ThreadPoolExecutor(12) as callers:
        waiting = [callers.submit(client.post, "/sql", json={"sql": WAITS}) for _ in range(6)]
        waiting += [callers.submit(client.post, "/ksql", json={"ksql": WAITS}) for _ in range(6)]
        for _ in range(5):
            assert client.post("/sql", json={"sql": "SHOW STREAMS;"}).status_code == 200
        assert {answer.result().status_code for answer in waiting} == {503}


def test_a_wait_in_a_script_that_changes_something_is_as_short(shop: Play) -> None:
    script = WAITS + "CREATE STREAM late (a INT) WITH (KAFKA_TOPIC = 'late', PARTITIONS = 1);"
    with served(shop, seconds=0.2) as client:
        assert client.post("/sql", json={"sql": script}).status_code == 503
        assert client.post("/ksql", json={"ksql": script}).status_code == 503
        assert "LATE" not in client.get("/streams").text


@pytest.mark.parametrize(
    "expression",
    [NEVER_ENDS, f"REGEXP_EXTRACT('(a+)+b', RPAD('a', 5000, 'a')) || CAST({NEVER_ENDS} AS VARCHAR)"],
)
def test_a_worker_is_free_after_its_client_was_disconnected(shop: Play, expression: str) -> None:
    shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
    with served(shop, seconds=0.5, workers=1) as client:
        assert client.post("/sql", json={"sql": f"SELECT {expression} FROM orders;"}).status_code == 503
        while (found := client.post("/sql", json={"sql": "SHOW STREAMS;"})).status_code == 503:
            pass
        assert found.status_code == 200


def test_statements_are_read_in_threads(server: Server, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    parse = works.parse_script

    def watched(*given: Any, **more: Any) -> Any:
        threads.append(threading.current_thread().name)
        return parse(*given, **more)

    monkeypatch.setattr(works, "parse_script", watched)
    for path, body in (
        ("/sql", {"sql": "SHOW TABLES;"}),
        ("/ksql", {"ksql": "SHOW STREAMS;"}),
        ("/query", {"ksql": "SELECT * FROM totals;"}),
        ("/query-stream", {"sql": "SELECT n FROM totals;"}),
    ):
        assert client.post(path, json=body).status_code == 200
    with connect(
        f"ws://127.0.0.1:{server.port}/ws/query?request=%7B%22ksql%22:%22SELECT%20total%20FROM%20totals;%22%7D"
    ):
        pass
    assert len(threads) >= 4
    assert all(name.startswith("potok-answer") for name in threads)


def test_bodies_that_come_slowly_do_not_fill_the_memory(shop: Play) -> None:
    body = b'{"sql": "SHOW STREAMS;"}'.ljust(600)
    with Server(shop.database, port=0, limits=Limits(body_bytes=800, bodies_bytes=1_000)) as server:
        started = b"POST /sql HTTP/1.1\r\n" + HEAD + b"Content-Length: 600\r\n\r\n" + body[:590]
        with httpx.Client(base_url=server.url, timeout=60) as client:
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow:
                slow.sendall(started)
                while (found := client.post("/sql", content=body)).status_code == 200:
                    pass
                assert (found.status_code, "too many requests" in found.text) == (503, True)
            while (found := client.post("/sql", content=body)).status_code == 503:
                pass
            assert found.status_code == 200


def test_a_disconnect_in_the_middle_of_a_request_body_is_not_a_failure(
    server: Server, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for path in (b"/sql", b"/ksql", b"/query-stream", b"/topics/orders/records", b"/inserts-stream"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
                caller.sendall(b"POST " + path + b" HTTP/1.1\r\n" + HEAD + b"Content-Length: 600\r\n\r\n{")
            for _ in range(3):
                assert client.get("/info").status_code == 200
    assert caplog.records == []


def test_no_answer_is_taken_for_another_kind_of_content(client: httpx.Client) -> None:
    for path in ("/info", "/tables", "/nothing", "/openapi.json"):
        assert client.get(path).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("CREATE STREAM many (a INT) WITH (KAFKA_TOPIC = 'many', PARTITIONS = 10001);", 400),
        (f"SELECT * FROM orders WHERE id LIKE '{'%_' * 50_000}';", 400),
        (f"SELECT * FROM orders WHERE id LIKE '{'_x' * 4_000}%_';", 200),
        (f"SELECT FORMAT_TIMESTAMP(FROM_UNIXTIME(0), '{'y' * 50_000}') FROM orders;", 200),
        (f"SELECT PARSE_DATE(id, '{'[' * 900}') FROM orders;", 200),
        (f"SELECT {'(' * 5_000}1{')' * 5_000} FROM orders;", 400),
        (f"SELECT {'-' * 5_000} 1 FROM orders;", 400),
        (f"SELECT {'NOT ' * 5_000} true FROM orders;", 400),
        (f"SELECT CAST(NULL AS {'ARRAY<' * 5_000}INT{'>' * 5_000}) FROM orders;", 400),
        (f"SELECT CAST(NULL AS INT {'ARRAY ' * 5_000}) FROM orders;", 400),
        (f"SELECT {'CASE WHEN true THEN ' * 5_000} 1 {'END ' * 5_000} FROM orders;", 400),
        (f"SELECT 1{' + 1' * 5_000} FROM orders;", 400),
        (f"SELECT id{'->a' * 5_000} FROM orders;", 400),
        (f"SELECT ARRAY[1]{'[1]' * 5_000} FROM orders;", 400),
        (f"SELECT id{', id' * 5_000} FROM orders;", 400),
        (f"SELECT id FROM orders ORDER BY id{', id' * 5_000};", 400),
        (f"SELECT COUNT(*) FROM orders GROUP BY id{', id' * 5_000};", 400),
        (f"SELECT STRUCT(a := 1{', a := 1' * 5_000}) FROM orders;", 400),
        (f"SELECT CAST(NULL AS STRUCT<a INT{', a INT' * 5_000}>) FROM orders;", 400),
        (f"CREATE STREAM wide (a INT{', a INT' * 5_000}) WITH (KAFKA_TOPIC = 'wide', PARTITIONS = 1);", 400),
        (f"CREATE STREAM wide (a INT) WITH (KAFKA_TOPIC = 'wide'{', PARTITIONS = 1' * 5_000});", 400),
        (f"INSERT INTO orders (id{', id' * 5_000}) VALUES (1);", 400),
        ("SELECT id FROM orders WHERE id IN ('x'" + ", 'x'" * 5_000 + ");", 200),
    ],
    ids=range(23),
)
def test_statements_of_absurd_size_are_refused(client: httpx.Client, shop: Play, statement: str, status: int) -> None:
    shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
    found = client.post("/sql", json={"sql": statement})
    assert found.status_code == status, found.text[:500]


def test_variables_and_properties_are_few_and_plain(client: httpx.Client) -> None:
    many = {f"n{number}": "v" for number in range(1_001)}
    for name in ("variables", "properties"):
        for given in (many, {"a": [[]] * 10}, {"a": {"b": "c"}}):
            assert client.post("/sql", json={"sql": "SHOW STREAMS;", name: given}).status_code == 400


def test_rows_are_written_in_a_thread(shop: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    whole = KsqlRows.whole

    def watched(*given: Any) -> bytes:
        threads.append(threading.current_thread().name)
        return whole(*given)

    monkeypatch.setattr(KsqlRows, "whole", watched)
    shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
    with served(shop) as client:
        for last in (5, 5_000):
            sql = f"SELECT EXPLODE(GENERATE_SERIES(1, {last})) FROM orders;"
            assert client.post("/query", json={"ksql": sql}).status_code == 200
    assert [name.startswith("potok-answer") for name in threads] == [True, True]


def test_a_client_that_never_takes_its_answer_is_cut_off(shop: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALL_S", 0.05)
    shop.do("INSERT INTO orders VALUES ('o1', 'u1', 1.0);")
    body = b'{"sql": "SELECT RPAD(id, 15000000, id) FROM orders;"}'
    with Server(shop.database, port=0) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
            caller.sendall(b"POST /sql HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            held = server._server.server_state.connections
            while not held:
                pass
            while held:
                pass
        assert not held


FEED = """
import tempfile
from potok.log.open import open_broker
from potok.log.clients.producer import Producer
from potok.server.api.feeds import Feed, positions_of
from potok.settings import Settings
from potok.statements.database import Database
from potok.statements.session import SqlSession
broker = open_broker(tempfile.mkdtemp())
with Database(broker, Settings(), runs=False) as database:
    SqlSession(database).execute("CREATE STREAM s (v VARCHAR) WITH (KAFKA_TOPIC = 's', PARTITIONS = 1);")
"""


def test_a_feed_from_the_beginning_takes_large_records_piece_by_piece() -> None:
    code = (
        FEED
        + """
    source = database.catalog.sources["S"]
    with Producer(broker) as producer:
        for _ in range(400):
            producer.send("s", b'{"V": "' + b"x" * 500_000 + b'"}')
    feed = Feed(database, source, positions_of(database, source, None, "beginning"))
    seen, largest = len(feed.take()), 0
    limit(150)
    while seen < 400:
        events = feed.take()
        seen += len(events)
        largest = max(largest, sum(len(event.data) for event in events))
    feed.close()
    print(json.dumps([seen, largest]))
"""
    )
    seen, largest = run_limited(code, None)
    assert seen == 400
    assert largest < 4 << 20

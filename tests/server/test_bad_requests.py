"""Requests that nobody should send get one of our answers, and work that nobody waits for ends."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

import potok
from potok.server.access.limits import Limits
from potok.server.app import create_app
from potok.server.http import connections
from potok.server.server import Server
from potok.sql.budget import TimeIsOver, check_time, in_time, until
from server.conftest import sell
from statements.playing import Play

ENDLESS_DIGITS = "9" * 5_000


@pytest.mark.parametrize(
    "path",
    [f"/tables/hourly/u1?at={ENDLESS_DIGITS}", f"/streams/orders?last_event_id={ENDLESS_DIGITS}:1"],
)
def test_a_number_without_end_is_a_bad_request(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 400


@pytest.mark.parametrize("name", ["host", "origin"])
def test_an_address_that_is_none_is_that_of_a_foreign_page(client: httpx.Client, name: str) -> None:
    assert client.get("/tables", headers={name: "http://[" if name == "origin" else "["}).status_code == 403


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/sql", {"sql": "SHOW STREAMS;", "variables": [1]}),
        ("/ksql", {"ksql": "SHOW STREAMS;", "sessionVariables": [1]}),
        ("/query-stream", {"sql": "SELECT * FROM totals;", "sessionVariables": "abc"}),
    ],
)
def test_variables_that_are_not_an_object_are_a_bad_request(client: httpx.Client, path: str, body: Any) -> None:
    found = client.post(path, json=body)
    assert (found.status_code, "is not an object" in found.text) == (400, True)


def test_records_are_not_appended_to_what_a_query_writes(client: httpx.Client) -> None:
    found = client.post("/topics/TOTALS/records", json={"key": "u1", "value": {"N": 9}})
    assert (found.status_code, "is written by query" in found.text) == (400, True)
    assert client.post("/topics/_commands/records", json={"value": "x"}).status_code == 400


def test_a_recreated_topic_has_no_idempotency_keys(client: httpx.Client, shop: Play) -> None:
    create = "CREATE STREAM notes (id VARCHAR KEY, v VARCHAR) WITH (KAFKA_TOPIC = 'notes', PARTITIONS = 1);"
    for _ in range(2):
        shop.do(create)
        sent = {"key": "a", "value": {"v": "b"}}
        found = client.post("/topics/notes/records", json=sent, headers={"Idempotency-Key": "k"})
        assert found.status_code == 201
        assert shop.rows("SELECT v FROM notes;") == [("b",)]
        shop.do("DROP STREAM notes DELETE TOPIC;")


@pytest.fixture
def hasty(shop: Play) -> Iterator[httpx.Client]:
    sell(shop, ("o1", "u1", 1.0))
    with (
        Server(shop.database, port=0, limits=Limits(seconds=0.3, workers=2)) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        yield client


def test_half_a_head_does_not_keep_a_connection(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.05)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as caller:
        caller.sendall(b"GET /info HTTP/1.1\r\nHost: 127.0.0.1")
        assert caller.recv(1) == b""


def test_half_a_body_is_not_waited_for(hasty: httpx.Client) -> None:
    port = hasty.base_url.port
    assert port is not None
    with socket.create_connection(("127.0.0.1", port), timeout=30) as caller:
        caller.sendall(f"POST /sql HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 90\r\n\r\n{{".encode())
        assert caller.recv(1000).startswith(b"HTTP/1.1 400")


def test_a_server_whose_threads_are_all_busy_still_says_that_it_is_well(hasty: httpx.Client) -> None:
    import threading

    done = threading.Event()

    @potok.function
    def until_it_is_done(text: str) -> str:
        done.wait(30)
        return text

    slow = {"sql": "SELECT UNTIL_IT_IS_DONE(user_id) AS x FROM totals WHERE user_id = 'u1';"}
    try:
        assert [hasty.post("/query-stream", json=slow).status_code for _ in range(4)] == [503] * 4
        assert hasty.get("/healthcheck").status_code == 200
    finally:
        done.set()


def test_work_sees_that_its_time_is_over() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    def count() -> int:
        return sum(in_time(endless()))

    import time

    with pytest.raises(TimeIsOver):
        until(time.monotonic() + 0.05, count)
    check_time()  # the next work of the thread has time again


@pytest.mark.parametrize(
    ("error", "status", "reported"),
    [
        (KeyError("secret"), 500, "internal error in Potok: KeyError"),
        (OSError(24, "Too many open files"), 503, "ulimit"),
    ],
)
def test_unexpected_exceptions_become_error_responses(shop: Play, error: Exception, status: int, reported: str) -> None:
    app = create_app(shop.database)

    @app.get("/fails")
    async def fails() -> None:
        raise error

    found = TestClient(app, "http://127.0.0.1", raise_server_exceptions=False).get("/fails")
    assert (found.status_code, found.headers["content-type"]) == (status, "application/problem+json")
    assert reported in found.text
    assert "secret" not in found.text

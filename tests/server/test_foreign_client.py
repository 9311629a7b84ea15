"""A client of ksqlDB from PyPI that we did not write: statements over HTTP/1.1, queries and inserts over HTTP/2."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import requests
from ksqldb import KSQLdbClient

from potok.server.server import Server
from server.conftest import sell
from statements.playing import Play


@pytest.fixture
def foreign(server: Server) -> KSQLdbClient:
    return KSQLdbClient(server.url)


def test_it_runs_statements(foreign: KSQLdbClient) -> None:
    (created,) = foreign.ksql("CREATE STREAM big AS SELECT * FROM orders WHERE amount > 100;")
    assert created["commandStatus"]["status"] == "SUCCESS"
    (listed,) = foreign.ksql("SHOW STREAMS;")
    assert [stream["name"] for stream in listed["streams"]] == ["BIG", "ORDERS"]
    assert {"name", "scope", "value"} == set(foreign.get_properties()[0])


def test_it_gets_errors_for_invalid_requests(foreign: KSQLdbClient) -> None:
    with pytest.raises(requests.HTTPError) as caught:
        foreign.ksql("DROP STREAM nobody;")
    assert caught.value.response.json()["error_code"] == 40001


def test_it_pulls(foreign: KSQLdbClient, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.5), ("o2", "bob", 1.0))
    header, *rows = foreign.query_sync("SELECT * FROM totals WHERE user_id = 'ann';")
    assert header["columnNames"] == ["USER_ID", "N", "TOTAL"]
    assert rows == [["ann", 1, 2.5]]


def test_it_inserts(foreign: KSQLdbClient, shop: Play) -> None:
    acks = foreign.inserts_stream("orders", [{"id": "a", "amount": 1}, {"id": "b", "amount": 2}])
    assert acks == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    assert sorted(shop.rows("SELECT id, amount FROM orders;")) == [("a", 1.0), ("b", 2.0)]


def test_it_is_pushed_to_until_it_closes_the_query(foreign: KSQLdbClient, shop: Play) -> None:
    async def listen() -> list[Any]:
        found: list[Any] = []
        async for row in foreign.query_async("SELECT id FROM orders EMIT CHANGES;", timeout=30):
            found.append(row)
            if len(found) == 1:
                await asyncio.to_thread(shop.do, "INSERT INTO orders (id) VALUES ('x');")
            else:
                assert await asyncio.to_thread(foreign.close_query, found[0]["queryId"])
        return found

    assert asyncio.run(listen())[1:] == [["x"]]
    assert not foreign.close_query("nobody")

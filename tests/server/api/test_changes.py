from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from potok.server.server import Server
from potok.statements.push import tail
from server.conftest import sell
from statements.playing import Play


def events(answer: httpx.Response) -> Iterator[tuple[str, str, Any]]:
    """Id, kind and data of each event, as a browser would have them."""
    event_id, kind = "", ""
    for line in answer.iter_lines():
        name, _, rest = line.partition(": ")
        if name == "id":
            event_id = rest
        elif name == "event":
            kind = rest
        elif name == "data":
            yield event_id, kind, json.loads(rest)
            kind = ""


def taken(client: httpx.Client, path: str, count: int, headers: dict[str, str] | None = None) -> list[Any]:
    with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        found = events(answer)
        return [next(found) for _ in range(count)]


def test_records_come_as_they_are_appended(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 1.0))
    with client.stream("GET", "/streams/orders") as answer:
        found = events(answer)
        sell(shop, ("o2", "ann", 2.0), at_ms=5)
        event_id, _, data = next(found)
        assert data["row"] == {"ID": "o2", "USER_ID": "ann", "AMOUNT": 2.0}
        assert (data["rowtime"], f"{data['partition']}:{data['offset'] + 1}" in event_id) == (5, True)


def test_a_reconnecting_client_resumes_after_its_last_event(client: httpx.Client, shop: Play) -> None:
    sell(shop, *((f"o{number}", "ann", float(number)) for number in range(6)))
    path = "/streams/orders?from=beginning"
    whole = taken(client, path, 6)
    for got in range(1, 6):
        last = whole[got - 1][0]
        assert taken(client, path, 6 - got, {"Last-Event-ID": last}) == whole[got:]
        assert taken(client, f"/streams/orders?last_event_id={last}", 6 - got) == whole[got:]


def test_changes_of_a_table_come_with_their_keys_and_deletes_without_a_row(client: httpx.Client, shop: Play) -> None:
    shop.do(
        "CREATE TABLE users (id VARCHAR PRIMARY KEY, name VARCHAR) WITH (KAFKA_TOPIC = 'users', PARTITIONS = 1);"
        "INSERT INTO users (id, name) VALUES ('a', 'Ann'); INSERT INTO users (id) VALUES ('a');"
    )
    there, gone = taken(client, "/tables/users/changes?from=beginning", 2)
    assert (there[2]["key"], there[2]["row"]) == ({"ID": "a"}, {"ID": "a", "NAME": "Ann"})
    assert (gone[2]["key"], gone[2]["row"]) == ({"ID": "a"}, None)


def test_changes_of_a_table_that_a_query_keeps(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 1.0))
    sell(shop, ("o2", "ann", 2.0))
    changes = taken(client, "/tables/totals/changes?from=beginning", 2)
    assert [data["row"]["TOTAL"] for _, _, data in changes] == [1.0, 3.0]
    windows = taken(client, "/tables/hourly/changes?from=beginning", 1)
    assert windows[0][2]["key"] == {"USER_ID": "ann", "WINDOWSTART": 0, "WINDOWEND": 3_600_000}


def test_what_could_not_be_computed_is_a_stream(client: httpx.Client, shop: Play) -> None:
    shop.do("CREATE STREAM parts AS SELECT id, 10 / CAST(user_id AS INT) AS part FROM orders;")
    sell(shop, ("o1", "0", 1.0))
    ((_, _, reported),) = taken(client, "/streams/ksql_processing_log?from=beginning", 1)
    assert (reported["row"]["SOURCE_TOPIC"], reported["row"]["FAILURES"]) == ("orders", 1)


def test_records_that_retention_took_are_a_gap_and_not_a_silence(client: httpx.Client, shop: Play) -> None:
    shop.broker.create_topic("short", segment_bytes=1, retention_ms=1)
    shop.do("CREATE STREAM short (id VARCHAR) WITH (KAFKA_TOPIC = 'short');")
    for name in "abc":
        shop.do(f"INSERT INTO short (id) VALUES ('{name}');")
    shop.broker.remove_records("short", 0, [(0, 2)])
    start = shop.broker.start_offsets("short")[0]
    gap, record = taken(client, "/streams/short", 2, {"Last-Event-ID": "0:0"})
    assert (gap[1], gap[2]) == ("gap", {"partition": 0, "from": 0, "to": 2})
    assert (start, record[0], record[2]["row"]) == (2, "0:3", {"ID": "c"})


@pytest.mark.parametrize("last", ["x", "0", "0:", "9:1", "0:99", "0:1,zz", "-1:0"])
def test_an_id_that_never_was_is_refused(client: httpx.Client, last: str) -> None:
    answer = client.get("/streams/orders", headers={"Last-Event-ID": last})
    assert answer.status_code == 400
    assert answer.json()["hint"]


def test_a_feed_has_a_start(client: httpx.Client) -> None:
    assert client.get("/streams/orders?from=yesterday").status_code == 400
    assert client.get("/streams/nobody").status_code == 404
    assert client.get("/streams/totals").json()["hint"] == "GET /tables/TOTALS"
    assert client.get("/tables/orders/changes").status_code == 404
    assert client.get("/streams").json()["streams"][0]["name"] == "ORDERS"


def test_the_same_over_a_websocket(server: Server, shop: Play) -> None:
    from websockets.sync.client import connect

    sell(shop, ("o1", "ann", 1.0), ("o2", "ann", 2.0))
    address = f"ws://127.0.0.1:{server.port}/streams/orders"
    with connect(f"{address}?from=beginning") as socket:
        first, second = json.loads(socket.recv(timeout=20)), json.loads(socket.recv(timeout=20))
    with connect(f"{address}?last_event_id={first['id']}") as socket:
        assert json.loads(socket.recv(timeout=20)) == second
    with connect(f"ws://127.0.0.1:{server.port}/tables/nobody/changes") as socket:
        assert json.loads(socket.recv(timeout=20))["error"]["status"] == 404


def test_a_client_that_does_not_read_is_disconnected_with_a_reason_and_delays_no_other(
    client: httpx.Client, server: Server, shop: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "MOST_BYTES", 12 << 20)
    big = [{"key": str(number), "value": {"user_id": "x" * 50_000}} for number in range(100)]
    with (
        httpx.Client(base_url=server.url, timeout=60) as slow,
        slow.stream("GET", "/streams/orders") as answer,
        client.stream("GET", "/streams/orders") as other,
    ):
        quick = events(other)
        for _ in range(8):
            assert client.post("/topics/orders/records", json=big).status_code == 201
            assert len([next(quick) for _ in range(100)]) == 100
        *_, (_, kind, data) = events(answer)
    assert kind == "error"
    assert "too slow" in data["detail"]
    assert data["hint"]


def test_feeds_end_when_the_server_does(shop: Play) -> None:
    server = Server(shop.database, port=0)
    server.start()
    with httpx.Client(base_url=server.url, timeout=30) as client, client.stream("GET", "/streams/orders") as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 1000"
        server.stop()
        assert [line for line in lines if line.strip(":")] == []

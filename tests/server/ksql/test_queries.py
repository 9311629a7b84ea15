from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from potok.server.access.limits import Limits
from potok.server.server import Server
from server.conftest import sell
from statements.playing import Play

PUSH = "SELECT id, amount FROM orders EMIT CHANGES"
EARLIEST = {"auto.offset.reset": "earliest"}


def query(client: httpx.Client, sql: str, accept: str = "", **more: Any) -> httpx.Response:
    headers = {"Accept": accept} if accept else {}
    return client.post("/query-stream", json={"sql": sql, **more}, headers=headers)


def test_a_pull_query_returns_a_header_and_a_line_for_each_row(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.5), ("o2", "ann", 1.0), ("o3", "bob", 4.0))
    answer = query(client, "SELECT * FROM totals;")
    assert answer.headers["content-type"] == "application/vnd.ksqlapi.delimited.v1"
    header, *rows = map(json.loads, answer.text.splitlines())
    assert header == {
        "queryId": None,
        "columnNames": ["USER_ID", "N", "TOTAL"],
        "columnTypes": ["STRING", "BIGINT", "DOUBLE"],
        "keyColumns": ["USER_ID"],
    }
    assert rows == [["ann", 2, 3.5], ["bob", 1, 4.0]]


def test_the_same_as_one_json_array(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.5))
    header, *rows = query(client, "SELECT n FROM totals", "application/json").json()
    assert header["columnNames"] == ["N"]
    assert rows == [[1]]


def test_the_same_in_the_form_of_query(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.5))
    for answer in (
        client.post("/query", json={"ksql": "SELECT * FROM totals;", "streamsProperties": {}}),
        query(client, "SELECT * FROM totals;", "application/vnd.ksql.v1+json"),
    ):
        header, row = answer.json()
        assert header["header"]["schema"] == "`USER_ID` STRING KEY, `N` BIGINT, `TOTAL` DOUBLE"
        assert row == {"row": {"columns": ["ann", 1, 2.5]}}


def test_a_table_whose_query_never_ran_has_no_rows(client: httpx.Client) -> None:
    assert len(query(client, "SELECT * FROM totals;").text.splitlines()) == 1


def test_a_push_query_streams_until_its_limit(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.5), ("o2", "ann", 1.0))
    answer = query(client, f"{PUSH} LIMIT 2;", properties=EARLIEST)
    header, *rows = map(json.loads, answer.text.splitlines())
    assert header["queryId"].startswith("transient_")
    assert sorted(rows) == [["o1", 2.5], ["o2", 1.0]]


def test_a_push_query_of_query_ends_with_a_message(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.5))
    properties = {"ksql.streams.auto.offset.reset": "earliest"}
    answer = client.post("/query", json={"ksql": f"{PUSH} LIMIT 1;", "streamsProperties": properties})
    assert [next(iter(part)) for part in answer.json()] == ["header", "row", "finalMessage"]
    # Clients read it line by line, and take the comma away.
    lines = answer.text.splitlines()
    assert json.loads(lines[1].removesuffix(",")) == {"row": {"columns": ["o1", 2.5]}}


def test_rows_come_while_the_query_stays_open_and_end_when_it_is_closed(client: httpx.Client, shop: Play) -> None:
    with client.stream("POST", "/query-stream", json={"sql": f"{PUSH};"}) as answer:
        lines = answer.iter_lines()
        query_id = json.loads(next(lines))["queryId"]
        shop.do("INSERT INTO orders (id, amount) VALUES ('a', 1);")
        assert json.loads(next(lines)) == ["a", 1.0]
        shop.do("INSERT INTO orders (id, amount) VALUES ('b', 2);")
        assert json.loads(next(lines)) == ["b", 2.0]
        assert client.get("/queries").json()["push"] == [query_id]
        assert client.post("/close-query", json={"queryId": query_id}).status_code == 200
        assert list(lines) == []
    assert client.get("/queries").json()["push"] == []


def test_an_unknown_query_cannot_be_closed(client: httpx.Client) -> None:
    answer = client.post("/close-query", json={"queryId": "transient_ORDERS_1"})
    assert answer.status_code == 400
    assert "transient_ORDERS_1" in answer.json()["message"]
    assert client.post("/close-query", json={}).status_code == 400


def test_a_disconnect_terminates_the_query_of_the_client(client: httpx.Client, server: Server) -> None:
    pushes = server.app.state.site.pushes
    with client.stream("POST", "/query-stream", json={"sql": f"{PUSH};"}) as answer:
        lines = answer.iter_lines()
        next(lines)
        assert len(pushes.ids) == 1
    _until(lambda: not pushes.ids)


def _until(true: Any) -> None:
    import time

    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_print_shows_records(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.5))
    answer = query(client, "PRINT orders FROM BEGINNING LIMIT 1;")
    assert "o1" in answer.text.splitlines()[1]


def test_variables_can_be_used_in_queries(client: httpx.Client) -> None:
    answer = query(client, "SELECT ${what} FROM totals;", sessionVariables={"what": "n"})
    assert json.loads(answer.text)["columnNames"] == ["N"]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM nobody;", 40001),
        ("SELEC 1;", 40001),
        ("SHOW STREAMS;", 40001),
        ("SELECT * FROM totals; SELECT * FROM totals;", 40000),
        ("", 40000),
        ("RUN SCRIPT 'x';", 40001),
        ("SELECT user_id, COUNT(*) FROM orders EMIT CHANGES;", 40001),
    ],
)
def test_what_cannot_be_answered_is_an_error_before_anything_is_sent(client: httpx.Client, sql: str, code: int) -> None:
    for path, body in (("/query-stream", {"sql": sql}), ("/query", {"ksql": sql})):
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["error_code"]) == (400, code), answer.text


def test_a_statement_that_needs_a_running_query_is_refused_where_none_runs(client: httpx.Client) -> None:
    answer = query(client, "SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id EMIT CHANGES;")
    assert answer.status_code == 503


@pytest.fixture
def narrow(shop: Play) -> Iterator[httpx.Client]:
    limits = Limits(rows=2, push_queries=1)
    with Server(shop.database, port=0, limits=limits) as server, httpx.Client(base_url=server.url, timeout=30) as found:
        yield found


def test_an_answer_with_too_many_rows_is_refused_and_not_cut(narrow: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 1.0), ("o2", "bob", 1.0))
    assert query(narrow, "SELECT * FROM totals;").status_code == 200
    sell(shop, ("o3", "cid", 1.0))
    for answer in (query(narrow, "SELECT * FROM totals;"), query(narrow, "SELECT * FROM totals LIMIT 7;")):
        assert answer.status_code == 400
        assert "more than 2 rows" in answer.json()["message"]
    assert len(query(narrow, "SELECT * FROM totals LIMIT 2;").text.splitlines()) == 3
    assert narrow.get("/tables/totals").status_code == 400
    assert len(narrow.get("/tables/totals?limit=2").json()["rows"]) == 2


def test_more_push_queries_than_allowed_are_refused(narrow: httpx.Client) -> None:
    with narrow.stream("POST", "/query-stream", json={"sql": f"{PUSH};"}) as answer:
        lines = answer.iter_lines()
        next(lines)
        refused = query(narrow, f"{PUSH};")
        assert refused.status_code == 429
        assert narrow.get("/streams/orders").status_code == 429
    _until(lambda: query(narrow, f"{PUSH} LIMIT 1;", properties={"auto.offset.reset": "x"}).status_code == 400)


def test_a_query_that_could_not_start_frees_its_slot(narrow: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 1.0))
    for _ in range(3):
        assert query(narrow, "SELECT nothing FROM orders EMIT CHANGES;").status_code == 400
    assert query(narrow, f"{PUSH} LIMIT 1;", properties=EARLIEST).status_code == 200


def test_rows_come_over_a_websocket(server: Server, shop: Play) -> None:
    from websockets.sync.client import connect

    sell(shop, ("o1", "ann", 2.5))
    for sql in ("SELECT user_id, total FROM totals;", f"{PUSH} LIMIT 1;"):
        request = json.dumps({"ksql": sql, "streamsProperties": EARLIEST})
        with connect(f"ws://127.0.0.1:{server.port}/ws/query?{httpx.QueryParams(request=request)}") as socket:
            schema, row = (json.loads(message) for message in socket)
        assert schema[0]["schema"]["type"] == "STRING"
        assert row["row"]["columns"][1] == 2.5


def test_a_websocket_that_asks_for_nothing_is_closed_with_the_reason(server: Server) -> None:
    from websockets.exceptions import ConnectionClosedError
    from websockets.sync.client import connect

    with connect(f"ws://127.0.0.1:{server.port}/ws/query") as socket, pytest.raises(ConnectionClosedError) as caught:
        socket.recv(timeout=20)
    assert caught.value.rcvd is not None
    assert "JSON" in caught.value.rcvd.reason

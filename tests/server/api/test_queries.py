from __future__ import annotations

import httpx
import pytest

from server.conftest import sell
from statements.playing import Play


def test_statements_return_their_results_in_order(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.5))
    sql = "CREATE TYPE t AS INT; SELECT user_id, n FROM totals; INSERT INTO orders (id) VALUES ('x');"
    done, rows, inserted = client.post("/sql", json={"sql": sql}).json()["results"]
    assert (done["kind"], done["command_id"]) == ("done", "type/T/create")
    assert rows["columns"] == [
        {"name": "USER_ID", "type": "VARCHAR", "key": True},
        {"name": "N", "type": "BIGINT", "key": False},
    ]
    assert rows["rows"] == [["ann", 1]]
    assert inserted["statement"] == "INSERT INTO orders (id) VALUES ('x');"


def test_details_are_read_to_the_end(client: httpx.Client) -> None:
    (result,) = client.post("/sql", json={"sql": "DESCRIBE orders EXTENDED;"}).json()["results"]
    details = dict(result["details"])
    assert details["Name"] == "ORDERS"
    readers = details["Queries that read from this"]
    assert sorted(row[0] for row in readers["rows"]) == ["CTAS_HOURLY_2", "CTAS_TOTALS_1"]


def test_an_error_response_has_the_position_and_the_results_before_it(client: httpx.Client) -> None:
    answer = client.post("/sql", json={"sql": "CREATE TYPE t AS INT;\nDROP STREAM ordrs;"})
    reported = answer.json()
    assert (answer.status_code, reported["status"], reported["title"]) == (400, 400, "unknown name")
    assert (reported["line"], reported["hint"]) == (2, "did you mean ORDERS?")
    assert [result["kind"] for result in reported["results"]] == ["done"]
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_consequences_of_an_error_are_described(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    described = {
        (method, path): operation["responses"]
        for path, operations in paths.items()
        for method, operation in operations.items()
    }
    appending = {("post", "/topics/{name}/records"), ("post", "/topics/{name}/events")}
    assert {key for key, responses in described.items() if "422" in responses} == appending
    assert all("application/problem+json" in responses["default"]["content"] for responses in described.values())
    schema = described["post", "/sql"]["400"]["content"]["application/problem+json"]["schema"]
    reported = client.post("/sql", json={"sql": "CREATE TYPE t AS INT;\nDROP STREAM ordrs;"}).json()
    assert reported.keys() == schema["properties"].keys()
    assert {"400", "404"} <= described["get", "/tables/{name}"].keys()
    assert "404" in described["delete", "/queries/{query_id}"]


@pytest.mark.parametrize("sql", ["SELECT * FROM orders EMIT CHANGES;", "PRINT orders;"])
def test_a_query_without_an_end_is_sent_to_another_route(client: httpx.Client, sql: str) -> None:
    answer = client.post("/sql", json={"sql": sql})
    assert answer.status_code == 400
    assert "/query-stream" in answer.json()["hint"]


def test_queries_are_listed_paused_resumed_and_ended(client: httpx.Client, shop: Play) -> None:
    listed = client.get("/queries").json()["queries"]
    assert [query["query_id"] for query in listed] == ["CTAS_TOTALS_1", "CTAS_HOURLY_2"]
    assert client.post("/queries/ctas_totals_1/pause").status_code == 200
    assert client.get("/queries/CTAS_TOTALS_1").json()["state"] == "PAUSED"
    assert client.post("/queries/ctas_totals_1/resume").status_code == 200
    assert client.get("/queries/CTAS_TOTALS_1").json()["state"] == "STOPPED"
    assert client.delete("/queries/CTAS_TOTALS_1").status_code == 200
    assert client.get("/queries/CTAS_TOTALS_1").status_code == 404
    assert client.post("/queries/CTAS_HOURLY_2/explode").status_code == 404
    assert client.delete("/queries/nobody").status_code == 404


def test_an_id_in_a_path_is_not_a_statement(client: httpx.Client, shop: Play) -> None:
    assert client.delete("/queries/ALL").status_code == 404
    assert client.delete("/queries/CTAS_TOTALS_1; DROP TABLE totals").status_code == 404
    assert len(shop.database.catalog_state().queries) == 2

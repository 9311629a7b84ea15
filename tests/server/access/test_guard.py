from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from potok.server.access.limits import Limits
from potok.server.access.tokens import Tokens
from potok.server.app import create_app
from statements.playing import Play

READER, WRITER, ADMIN = "a-reader-and-no-more", "a-writer-and-no-more", "an-administrator-here"
TOKENS = Tokens.load(environ={"POTOK_TOKENS": f"read={READER} write={WRITER} admin={ADMIN}"})


def app(play: Play, **options: Any) -> TestClient:
    return TestClient(create_app(play.database, **options), base_url="http://localhost:8088")


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_health_checks_need_no_token(shop: Play) -> None:
    client = app(shop, tokens=TOKENS)
    assert client.get("/info").status_code == 200
    assert client.get("/healthcheck").json()["isHealthy"] is True


@pytest.mark.parametrize("path", ["/tables", "/queries", "/openapi.json", "/streams/orders", "/nothing", "/status"])
def test_everything_else_does(shop: Play, path: str) -> None:
    answer = app(shop, tokens=TOKENS).get(path)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"]


def test_a_reader_reads(shop: Play) -> None:
    client = app(shop, tokens=TOKENS)
    assert client.get("/tables/totals", headers=bearer(READER)).status_code == 200
    assert client.post("/ksql", json={"ksql": "SHOW STREAMS;"}, headers=bearer(READER)).status_code == 200
    query = client.post("/query-stream", json={"sql": "SELECT * FROM totals;"}, headers=bearer(READER))
    assert query.status_code == 200


@pytest.mark.parametrize(
    ("sql", "token", "allowed"),
    [
        ("INSERT INTO orders (id) VALUES ('a');", READER, False),
        ("INSERT INTO orders (id) VALUES ('a');", WRITER, True),
        ("SHOW STREAMS;", WRITER, False),
        ("CREATE TYPE t AS INT;", WRITER, False),
        ("CREATE TYPE t AS INT;", READER, False),
        ("CREATE TYPE t AS INT;", ADMIN, True),
        ("TERMINATE ALL;", WRITER, False),
        ("SHOW STREAMS; DROP STREAM orders;", READER, False),
    ],
)
def test_what_a_statement_needs_depends_on_the_statement(shop: Play, sql: str, token: str, allowed: bool) -> None:
    client = app(shop, tokens=TOKENS)
    for path, body in (("/ksql", {"ksql": sql}), ("/sql", {"sql": sql})):
        assert client.post(path, json=body, headers=bearer(token)).status_code == (200 if allowed else 403)
        shop.do("DROP TYPE IF EXISTS t;")


def test_nothing_of_a_script_happens_if_one_statement_is_forbidden(shop: Play) -> None:
    sql = "INSERT INTO orders (id) VALUES ('a'); DROP TABLE totals;"
    assert app(shop, tokens=TOKENS).post("/sql", json={"sql": sql}, headers=bearer(WRITER)).status_code == 403
    assert shop.rows("SELECT * FROM orders;") == []


def test_records_and_queries_have_scopes_too(shop: Play) -> None:
    client = app(shop, tokens=TOKENS)
    record = {"value": "x", "key": "k"}
    assert client.post("/topics/orders/records", json=record, headers=bearer(READER)).status_code == 403
    assert client.post("/topics/orders/records", json=record, headers=bearer(WRITER)).status_code == 201
    assert client.post("/queries/CTAS_TOTALS_1/pause", headers=bearer(WRITER)).status_code == 403
    assert client.post("/inserts-stream", content='{"target":"orders"}', headers=bearer(READER)).status_code == 403


def test_a_page_of_another_site_is_not_answered(shop: Play) -> None:
    client = app(shop)
    statement = {"ksql": "DROP TABLE totals;"}
    answer = client.post("/ksql", json=statement, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403
    assert "TOTALS" in shop.database.catalog.sources


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
        ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200),
        ({}, 200),
    ],
)
def test_a_browser_that_says_that_another_site_asks_is_not_answered(
    shop: Play, headers: dict[str, str], status: int
) -> None:
    assert app(shop).get("/tables", headers=headers).status_code == status


def test_a_form_of_another_site_cannot_be_sent(shop: Play) -> None:
    form = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert app(shop).post("/sql", json={"sql": "SHOW STREAMS;"}, headers=form).status_code == 403


def test_a_name_that_was_bent_to_this_machine_is_not_answered(shop: Play) -> None:
    assert app(shop).get("/tables", headers={"Host": "evil.example:8088"}).status_code == 403
    assert app(shop).get("/tables", headers={"Host": "127.0.0.1:8088"}).status_code == 200
    assert app(shop).get("/tables", headers={"Host": "[::1]:8088"}).status_code == 200


def test_a_page_of_this_server_is_answered(shop: Play) -> None:
    answer = app(shop).get("/tables", headers={"Origin": "http://localhost:8088"})
    assert answer.status_code == 200


def test_sites_that_were_named_are_answered_with_leave(shop: Play) -> None:
    client = app(shop, origins=["https://shop.example"])
    origin = {"Origin": "https://shop.example"}
    answer = client.get("/tables", headers=origin)
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "https://shop.example"
    asked = client.options("/tables", headers={**origin, "Access-Control-Request-Method": "GET"})
    assert asked.status_code == 204
    assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]


def test_by_default_no_site_has_leave(shop: Play) -> None:
    assert "Access-Control-Allow-Origin" not in app(shop).get("/tables").headers


def test_a_body_over_the_limit_is_refused_by_its_length(shop: Play) -> None:
    client = app(shop, limits=Limits(body_bytes=100))
    answer = client.post("/ksql", json={"ksql": "SHOW STREAMS;" + " " * 200})
    assert answer.status_code == 413


def test_a_body_over_the_limit_is_refused_while_it_comes(shop: Play) -> None:
    client = app(shop, limits=Limits(body_bytes=100))
    answer = client.post("/sql", content=iter([b'{"sql": "', b" " * 90, b" " * 90]))
    assert answer.status_code == 413
    assert answer.json()["hint"]


def test_a_socket_without_a_token_is_closed_with_the_reason(shop: Play) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect) as caught, app(shop, tokens=TOKENS).websocket_connect("/streams/orders"):
        pass
    assert "token" in caught.value.reason


def test_a_token_over_its_rate_waits(shop: Play) -> None:
    client = app(shop, tokens=TOKENS, limits=Limits(requests_per_second=0.1))
    assert client.get("/tables", headers=bearer(READER)).status_code == 200
    refused = client.get("/tables", headers=bearer(READER))
    assert (refused.status_code, int(refused.headers["Retry-After"]) > 5) == (429, True)
    assert client.post("/ksql", json={"ksql": "SHOW STREAMS;"}, headers=bearer(READER)).json()["error_code"] == 42900
    assert client.get("/tables", headers=bearer(ADMIN)).status_code == 200, "each token has its own limit"
    assert client.get("/livez", headers=bearer(READER)).status_code != 429


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("potok.example", "/tables", 200),
        ("potok.example:8088", "/tables", 200),
        ("POTOK.example.", "/tables", 200),
        ("localhost:8088", "/tables", 200),
        ("evil.example", "/tables", 403),
        ("potok.example.evil.example", "/tables", 403),
        ("potok.example@evil.example", "/tables", 403),
        ("", "/tables", 403),
        ("10.0.0.7:8088", "/livez", 200),
        ("10.0.0.7:8088", "/metrics", 200),
        ("10.0.0.7:8088", "/overview", 403),
    ],
)
def test_with_allowed_hosts_only_these_are_answered(shop: Play, host: str, path: str, status: int) -> None:
    client = app(shop, tokens=TOKENS, hosts=["potok.example"])
    answer = client.get(path, headers={**bearer(ADMIN), "Host": host})
    assert (answer.status_code if answer.status_code != 503 else 200) == status


def test_without_tokens_an_allowed_host_is_answered_and_any_other_is_not(shop: Play) -> None:
    client = app(shop, hosts=["potok.example"])
    assert client.get("/tables", headers={"Host": "potok.example"}).status_code == 200
    assert client.get("/livez", headers={"Host": "evil.example"}).status_code == 403

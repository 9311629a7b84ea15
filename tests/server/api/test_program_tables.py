"""Tables of a `StreamsBuilder` program over HTTP: the same routes as those of statements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.server.access.tokens import Tokens
from potok.server.server import Server
from potok.settings import Settings
from potok.statements.queries.query_tables import QueryTables
from potok.topology.nodes.windows import tumbling_ms

HOUR_MS = 3_600_000


def shop() -> StreamsBuilder:
    builder = StreamsBuilder("shop")
    orders = builder.stream("orders", value="user string, amount double, n bigint")
    by_user = orders.group_by("user")
    by_user.count(name="order-counts")
    by_user.windowed_by(tumbling_ms(HOUR_MS, HOUR_MS, 10 * HOUR_MS)).count(name="hourly")
    by_user.aggregate(
        {"n": 0, "x": 0.0}, lambda v, agg: {"n": agg["n"] + v["n"], "x": agg["x"] + v["amount"]}, name="both"
    )
    orders.group_by("n").count(name="by_number")
    builder.table("users", name="users")
    return builder


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[InProcess]:
    with InProcess(shop(), directory=tmp_path) as found:
        for user, amount, n, at in (("ann", 1.5, 1, 0), ("bob", 2.0, 2, 1), ("ann", 3.0, 2, HOUR_MS)):
            found.send("orders", {"user": user, "amount": amount, "n": n}, timestamp=at)
        found.send("users", {"name": "Ann", "tags": ["a", "b"]}, "u1", timestamp=0)
        found.run()
        yield found


@contextmanager
def serving(driver: InProcess, tokens: Tokens | None = None) -> Iterator[httpx.Client]:
    with (
        QueryTables(driver.broker, Settings(), ["shop"]) as database,
        Server(database, port=0, tokens=tokens) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        yield client


@pytest.fixture
def client(driver: InProcess) -> Iterator[httpx.Client]:
    with serving(driver) as found:
        yield found


def test_the_tables_of_the_program_are_listed(client: httpx.Client) -> None:
    found = {table["name"]: table for table in client.get("/tables").json()["tables"]}
    assert sorted(found) == ["BOTH", "BY_NUMBER", "HOURLY", "ORDER_COUNTS", "USERS"]
    assert found["BOTH"]["columns"] == ["KEY", "N", "X"]
    assert found["HOURLY"]["windowed"] and found["USERS"]["readable"]


@pytest.mark.parametrize("name", ["order-counts", "ORDER_COUNTS", "order_counts"])
def test_a_row_is_found_by_its_key(client: httpx.Client, name: str) -> None:
    assert client.get(f"/tables/{name}/ann").json() == {"KEY": "ann", "VALUE": 2}


def test_fields_are_columns_and_keys_have_types(client: httpx.Client) -> None:
    assert client.get("/tables/both/ann").json() == {"KEY": "ann", "N": 3, "X": 4.5}
    assert client.get("/tables/by_number/2").json() == {"KEY": 2, "VALUE": 2}


def test_values_without_a_declared_type_are_json(client: httpx.Client) -> None:
    assert client.get("/tables/users/u1").json() == {"KEY": "u1", "VALUE": {"name": "Ann", "tags": ["a", "b"]}}


def test_a_missing_row_or_table_is_not_found(client: httpx.Client) -> None:
    assert client.get("/tables/both/nobody").status_code == 404
    assert "BOTH" in client.get("/tables/bot/x").json()["hint"]


def test_rows_come_in_the_order_of_their_keys(client: httpx.Client) -> None:
    rows = client.get("/tables/order-counts").json()["rows"]
    assert [(row["KEY"], row["VALUE"]) for row in rows] == [("ann", 2), ("bob", 1)]
    assert [row["KEY"] for row in client.get("/tables/order-counts?prefix=b").json()["rows"]] == ["bob"]


def test_windows_are_chosen_by_time(client: httpx.Client) -> None:
    rows = client.get("/tables/hourly/ann").json()["rows"]
    assert [(row["WINDOWSTART"], row["VALUE"]) for row in rows] == [(0, 1), (HOUR_MS, 1)]
    assert len(client.get(f"/tables/hourly/ann?at={HOUR_MS + 1}").json()["rows"]) == 1


def test_statements_read_the_tables_and_change_nothing(client: httpx.Client) -> None:
    found = client.post("/sql", json={"sql": "SELECT N FROM both WHERE KEY = 'ann';"}).json()
    assert found["results"][0]["rows"] == [[3]]
    refused = client.post("/sql", json={"sql": "CREATE STREAM s (a VARCHAR) WITH (KAFKA_TOPIC='orders');"})
    assert refused.status_code == 400
    assert "defined by the program" in refused.text


def test_the_query_is_listed(client: httpx.Client) -> None:
    (query,) = client.get("/queries").json()["queries"]
    assert (query["query_id"], query["kind"]) == ("shop", "PROGRAM")


def test_tokens_are_asked_for(driver: InProcess) -> None:
    with serving(driver, Tokens.load(environ={"POTOK_TOKENS": "read=a-long-and-secret-token"})) as client:
        assert client.get("/tables/both/ann").status_code == 401
        allowed = {"Authorization": "Bearer a-long-and-secret-token"}
        assert client.get("/tables/both/ann", headers=allowed).json()["N"] == 3


def test_a_program_that_never_ran_has_no_tables_yet(driver: InProcess) -> None:
    with QueryTables(driver.broker, Settings(), ["later"]) as database, Server(database, port=0) as server:
        assert httpx.get(f"{server.url}/tables").json() == {"tables": []}


def events(client: httpx.Client, path: str, count: int, meanwhile: object = None, **headers: str) -> list[dict]:
    """The first events of a feed; `meanwhile` is called when it has started."""
    found: list[dict] = []
    with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        kind = ""
        for line in answer.iter_lines():
            if line.startswith("retry") and callable(meanwhile):
                meanwhile()
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            if line.startswith("data: "):
                found.append({"kind": kind, **json.loads(line.removeprefix("data: "))})
                kind = ""
            if len(found) == count:
                return found
    raise AssertionError(found)


def test_changes_are_the_differences_between_batches(driver: InProcess, client: httpx.Client) -> None:
    def sell() -> None:
        driver.send("orders", {"user": "bob", "amount": 1.0, "n": 9}, timestamp=2)
        driver.run()

    (change,) = events(client, "/tables/order-counts/changes", 1, sell)
    assert (change["key"], change["row"]) == ({"KEY": "bob"}, {"KEY": "bob", "VALUE": 2})


def test_a_deleted_row_is_null(driver: InProcess, client: httpx.Client) -> None:
    def leave() -> None:
        driver.send("users", None, "u1", timestamp=3)
        driver.run()

    (change,) = events(client, "/tables/users/changes", 1, leave)
    assert (change["key"], change["row"]) == ({"KEY": "u1"}, None)


def test_from_the_beginning_all_rows_come_first(client: httpx.Client) -> None:
    found = events(client, "/tables/order-counts/changes?from=beginning", 2)
    assert [event["row"]["KEY"] for event in found] == ["ann", "bob"]


def test_a_client_that_missed_batches_gets_a_gap_and_all_rows(client: httpx.Client) -> None:
    found = events(client, "/tables/order-counts/changes", 3, **{"Last-Event-ID": "0"})
    assert [event["kind"] for event in found] == ["gap", "", ""]

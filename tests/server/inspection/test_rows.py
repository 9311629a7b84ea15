from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.server.server import Server
from potok.settings import Settings
from potok.snapshots import table_search
from potok.statements.database import Database
from potok.topology.nodes.windows import tumbling_ms

HOUR_MS = 3_600_000


def program() -> StreamsBuilder:
    builder = StreamsBuilder("shop")
    orders = builder.stream("orders", value="user string, amount double")
    by_user = orders.group_by("user")
    by_user.count(name="counts")
    by_user.windowed_by(tumbling_ms(HOUR_MS, HOUR_MS, 10 * HOUR_MS)).count(name="hourly")
    builder.table("prices", value="price double", name="prices", history="1000 days")
    return builder


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[InProcess]:
    with InProcess(program(), directory=tmp_path) as found:
        for user, at in (("ann", 0), ("bob", 1), ("bo", 2), ("ann", HOUR_MS)):
            found.send("orders", {"user": user, "amount": 1.0}, timestamp=at)
        for price, at in ((1.0, 100), (2.0, 200)):
            found.send("prices", {"price": price}, "tea", timestamp=at)
        found.run()
        yield found


@pytest.fixture
def client(driver: InProcess) -> Iterator[httpx.Client]:
    """A server of the catalog: the program is not part of it, and is in the log."""
    with (
        Database(driver.broker, Settings(), runs=False) as database,
        Server(database, port=0) as server,
        httpx.Client(base_url=f"{server.url}/queries/shop", timeout=30) as client,
    ):
        yield client


def keys(client: httpx.Client, table: str, **params: Any) -> list[Any]:
    return [row["key"] for row in client.get(f"/tables/{table}", params=params).json()["rows"]]


def test_tables_of_any_query_of_the_log_are_listed(client: httpx.Client) -> None:
    found = {table["table"]: table for table in client.get("/tables").json()["tables"]}
    assert sorted(found) == ["counts", "hourly", "prices"]
    assert (found["hourly"]["window_ms"], found["counts"]["keys"]) == (HOUR_MS, 3)
    assert found["prices"]["history_ms"] and found["counts"]["history_ms"] is None


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({}, ["ann", "bo", "bob"]), ({"key": "bob"}, ["bob"]), ({"key": "eve"}, []), ({"prefix": "bo"}, ["bo", "bob"]),
        ({"from": "b"}, ["bo", "bob"]), ({"from": "b", "to": "bob"}, ["bo"]), ({"find": "N"}, ["ann"]),
        ({"limit": 2}, ["ann", "bo"]),
    ],
)  # fmt: skip
def test_rows_are_found_by_key_prefix_range_and_part(
    client: httpx.Client, params: dict[str, Any], found: list[str]
) -> None:
    assert keys(client, "counts", **params) == found


def test_a_cut_list_says_that_there_is_more(client: httpx.Client) -> None:
    assert client.get("/tables/counts", params={"limit": 2}).json()["more"] is True
    assert client.get("/tables/counts", params={"limit": 3}).json()["more"] is False


@pytest.mark.parametrize(
    ("params", "starts"),
    [
        ({"key": "ann"}, [0, HOUR_MS]), ({"key": "ann", "at": 5}, [0]), ({"window_from": 1}, [HOUR_MS]),
        ({"window_to": 1}, [0, 0, 0]), ({"at": HOUR_MS + 1}, [HOUR_MS]), ({"prefix": "bo"}, [0, 0]),
    ],
)  # fmt: skip
def test_rows_of_windows_are_found_by_instants(client: httpx.Client, params: dict[str, Any], starts: list[int]) -> None:
    rows = client.get("/tables/hourly", params=params).json()["rows"]
    assert [row["start"] for row in rows] == starts


def test_versions_show_what_a_row_was(client: httpx.Client) -> None:
    versions = client.get("/tables/prices/history", params={"key": "tea"}).json()["versions"]
    assert [(each["since_ms"], each["value"]["price"]) for each in versions] == [(100, 1.0), (200, 2.0)]
    for params in ({"as_of": 150}, {"as_of": 150, "key": "tea"}):
        (row,) = client.get("/tables/prices", params=params).json()["rows"]
        assert (row["key"], row["value"]["price"]) == ("tea", 1.0)
    assert client.get("/tables/prices", params={"as_of": 50}).json()["rows"] == []


def test_rows_at_an_instant_are_refused_if_there_are_too_many_versions(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_search, "SCANNED", 2)
    assert client.get("/tables/prices", params={"as_of": 150}).status_code == 200
    monkeypatch.setattr(table_search, "SCANNED", 1)
    answer = client.get("/tables/prices", params={"as_of": 150})
    assert answer.status_code == 400 and "one key" in answer.json()["hint"]
    (row,) = client.get("/tables/prices", params={"as_of": 150, "key": "tea"}).json()["rows"]
    assert row["value"]["price"] == 1.0


def test_rows_of_a_key_are_at_least_as_new_as_their_batch(
    client: httpx.Client, driver: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = table_search.rows_of_key

    def then_commit(*wanted: Any) -> list[Any]:
        rows = read(*wanted)
        driver.send("orders", {"user": "bob", "amount": 1.0}, timestamp=HOUR_MS + 1)
        driver.run()
        return rows

    before = client.get("/tables/counts", params={"key": "bob"}).json()["batch"]
    monkeypatch.setattr(table_search, "rows_of_key", then_commit)
    assert client.get("/tables/counts", params={"key": "bob"}).json()["batch"] == before


def test_a_table_without_versions_says_how_to_keep_them(client: httpx.Client) -> None:
    answer = client.get("/tables/counts", params={"as_of": 5})
    assert answer.status_code == 400 and "history=" in answer.json()["hint"]
    assert client.get("/tables/counts/history", params={"key": "ann"}).status_code == 400


def test_a_table_that_does_not_exist_is_not_found(client: httpx.Client) -> None:
    answer = client.get("/tables/count")
    assert (answer.status_code, answer.json()["hint"]) == (404, 'did you mean "counts"?')


def test_changes_follow_each_commit(client: httpx.Client, driver: InProcess) -> None:
    with client.stream("GET", "/tables/counts/changes") as answer:
        lines = answer.iter_lines()
        next(lines)  # the feed is open
        driver.send("orders", {"user": "bob", "amount": 1.0}, timestamp=HOUR_MS + 1)
        driver.run()
        line = next(line for line in lines if line.startswith("data: "))
    change = orjson.loads(line.removeprefix("data: "))
    assert (change["key"], change["value"]) == ("bob", 2)

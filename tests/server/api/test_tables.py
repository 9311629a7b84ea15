from __future__ import annotations

from typing import Any

import httpx
import pytest

from server.conftest import HOUR_MS, sell
from statements.playing import Play


def test_a_row_is_found_by_its_key(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.5), ("o2", "ann", 1.0))
    for name in ("totals", "TOTALS"):
        assert client.get(f"/tables/{name}/ann").json() == {"USER_ID": "ann", "N": 2, "TOTAL": 3.5}


def test_a_key_may_hold_anything_that_a_path_can(client: httpx.Client, shop: Play) -> None:
    for user in ("a/b", "ü ?", "changes/x", "%41"):
        sell(shop, ("o1", user, 1.0))
        from urllib.parse import quote

        assert client.get(f"/tables/totals/{quote(user, safe='')}").json()["USER_ID"] == user


def test_a_key_without_a_row_is_not_found(client: httpx.Client) -> None:
    answer = client.get("/tables/totals/nobody")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_rows_are_found_by_range_and_prefix(client: httpx.Client, shop: Play) -> None:
    sell(shop, *((f"o{number}", user, 1.0) for number, user in enumerate(("ann", "anton", "bob", "cid"))))

    def users(**asked: Any) -> list[str]:
        return [row["USER_ID"] for row in client.get("/tables/totals", params=asked).json()["rows"]]

    assert users() == ["ann", "anton", "bob", "cid"]
    assert users(prefix="an") == ["ann", "anton"]
    assert users(**{"from": "anton", "to": "cid"}) == ["anton", "bob"]
    assert users(**{"from": "b"}) == ["bob", "cid"]
    assert users(limit=3) == ["ann", "anton", "bob"]
    assert users(prefix="zz") == []


def test_windows_of_a_key_are_found_by_time(client: httpx.Client, shop: Play) -> None:
    for hour in range(3):
        sell(shop, (f"o{hour}", "ann", 1.0), at_ms=hour * HOUR_MS + 5)

    def starts(**asked: Any) -> list[int]:
        found = client.get("/tables/hourly/ann", params=asked).json()["rows"]
        return [row["WINDOWSTART"] // HOUR_MS for row in found]

    assert starts() == [0, 1, 2]
    assert starts(at=HOUR_MS) == [1]
    assert starts(at="1970-01-01T02:30:00Z") == [2]
    assert starts(**{"from": HOUR_MS, "to": 2 * HOUR_MS}) == [1]
    assert starts(**{"from": 1}) == [1, 2]
    assert client.get("/tables/hourly/nobody").json() == {"rows": []}
    rows = client.get("/tables/hourly", params={"window_from": HOUR_MS, "window_to": HOUR_MS + 1}).json()["rows"]
    assert [(row["USER_ID"], row["WINDOWSTART"], row["N"]) for row in rows] == [("ann", HOUR_MS, 1)]


def test_keys_of_other_types_and_of_several_columns(client: httpx.Client, play: Play) -> None:
    play.do(
        "CREATE STREAM sales (shop VARCHAR, day DATE, n INT) WITH (KAFKA_TOPIC = 'sales', PARTITIONS = 1);"
        "CREATE TABLE by_number AS SELECT n, COUNT(*) AS c FROM sales GROUP BY n;"
        "CREATE TABLE by_both WITH (KEY_FORMAT = 'JSON') AS SELECT shop, n, COUNT(*) AS c FROM sales GROUP BY shop, n;"
        "INSERT INTO sales (shop, n) VALUES ('x', -7);"
    )
    play.run()
    assert client.get("/tables/by_number/-7").json() == {"N": -7, "C": 1}
    assert client.get("/tables/by_number/x").status_code == 400
    assert [row["N"] for row in client.get("/tables/by_number", params={"to": 0}).json()["rows"]] == [-7]
    for key in ('["x", -7]', '{"SHOP": "x", "N": -7}'):
        assert client.get(f"/tables/by_both/{key}").json() == {"SHOP": "x", "N": -7, "C": 1}
    for key in ("x", '["x"]', "{}"):
        answer = client.get(f"/tables/by_both/{key}")
        assert answer.status_code == 400
        assert "SHOP VARCHAR, N INTEGER" in answer.json()["hint"]
    assert client.get("/tables/by_both", params={"from": "x"}).status_code == 400


@pytest.mark.parametrize(
    ("path", "status", "hint"),
    [
        ("/tables/totls/a", 404, "TOTALS"),
        ("/tables/orders/a", 404, "/streams/ORDERS"),
        ("/tables/totals/a?at=0", 400, "omit"),
        ("/tables/hourly/a?at=noon", 400, "milliseconds"),
        ("/tables/hourly?prefix=a", 400, "POST /sql"),
        ("/tables/totals?prefix=a&from=b", 400, "from and to"),
        ("/tables/totals?limit=0", 400, "openapi"),
        ("/tables/totals?limit=100001", 400, "from"),
        ("/tables/users/a", 400, "CREATE TABLE"),
    ],
)
def test_what_cannot_be_answered_says_what_to_do(
    client: httpx.Client, play: Play, path: str, status: int, hint: str
) -> None:
    play.do("CREATE TABLE users (id VARCHAR PRIMARY KEY, name VARCHAR) WITH (KAFKA_TOPIC = 'users', PARTITIONS = 1);")
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert hint in answer.json()["hint"]


def test_tables_are_listed(client: httpx.Client) -> None:
    found = client.get("/tables").json()["tables"]
    assert [(table["name"], table["windowed"], table["readable"]) for table in found] == [
        ("HOURLY", True, True),
        ("TOTALS", False, True),
    ]


def test_the_api_is_described(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/tables/{name}/{key}", "/tables/{name}/changes", "/topics/{name}/records", "/sql"} <= paths.keys()
    by_key = paths["/tables/{name}/{key}"]["get"]
    assert [parameter["name"] for parameter in by_key["parameters"]] == [
        *("name", "key", "at", "from", "to"),
        *("Potok-Wait-For", "Prefer"),
    ]

from __future__ import annotations

import httpx
import orjson

from server.conftest import sell
from statements.playing import Play


def test_every_query_has_a_row(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.0), ("o2", "bob", 3.0))

    found = client.get("/overview").json()

    rows = {row["query"]: row for row in found["queries"]}
    assert rows.keys() == {"CTAS_TOTALS_1", "CTAS_HOURLY_2"}
    row = rows["CTAS_TOTALS_1"]
    assert (row["state"], row["health"], row["kind"], row["total_in"], row["lag"]) == ("running", "ok", "sql", 2, 0)
    assert found["totals"]["queries"] == 2
    assert found["scopes"] == ["read", "write", "admin"]


def test_the_overview_can_be_followed(client: httpx.Client, shop: Play) -> None:
    with client.stream("GET", "/overview/live") as answer:
        lines = (line for line in answer.iter_lines() if line.startswith("data: "))
        first, second = (orjson.loads(next(lines).removeprefix("data: ")) for _ in range(2))
    assert "history" in first and "history" not in second
    assert [row["query"] for row in second["queries"]]


def test_the_figures_of_a_query_end_with_its_state(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.0))
    with client.stream("GET", "/queries/ctas_totals_1/live") as answer:
        line = next(line for line in answer.iter_lines() if line.startswith("data: "))
    found = orjson.loads(line.removeprefix("data: "))
    assert (found["state"], found["total_in"], found["kind"]) == ("running", 1, "sql")
    assert found["actions"] == ["pause", "resume", "restart", "terminate"]
    assert found["history"]


def test_a_query_that_does_not_exist_is_not_found(client: httpx.Client) -> None:
    for path in ("topology", "figures", "live", "state", "explain", "tables", "dead-letters"):
        answer = client.get(f"/queries/nothing/{path}")
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:potok:no-such-query"), path


def test_topology_state_and_explanation_are_those_of_the_last_run(client: httpx.Client, shop: Play) -> None:
    sell(shop, ("o1", "ann", 2.0))
    query = "/queries/CTAS_TOTALS_1"
    assert "TOTALS" in [node["name"] for node in client.get(f"{query}/topology").json()["nodes"]]
    state = client.get(f"{query}/state").json()
    assert (state["batch"], state["start"], len(state["shards"]), state["pending"]) == (1, 1, 2, None)
    assert sum(row["offset"] for row in state["offsets"]) == 1
    explained = client.get(f"{query}/explain").json()
    assert explained["statement"].startswith("CREATE TABLE totals")
    assert {step["runs"] for step in explained["steps"]} == {"native"}
    assert "shards" in explained["settings"]

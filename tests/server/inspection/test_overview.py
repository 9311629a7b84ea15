from __future__ import annotations

from pathlib import Path

import httpx
import orjson

from potok.log.open import open_broker
from potok.server.server import Server
from potok.settings import Settings
from potok.statements.errors import CannotCompare
from potok.statements.queries.query_tables import QueryTables
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


def test_restart_retries_a_query_of_the_catalog(client: httpx.Client, shop: Play) -> None:
    answer = client.post("/queries/CTAS_TOTALS_1/restart")
    assert (answer.status_code, answer.json()["query"]) == (200, "CTAS_TOTALS_1")
    assert not shop.database.catalog_state().queries["CTAS_TOTALS_1"].paused
    assert client.post("/queries/CTAS_TOTALS_1/explode").status_code == 404


class Controlled:
    """A query that notes the calls it receives."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")


def test_a_program_is_paused_by_the_process_that_runs_it_and_by_no_other(tmp_path: Path) -> None:
    running = Controlled()
    with (
        QueryTables(open_broker(tmp_path), Settings(), ["shop"]) as database,
        Server(database, port=0) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        refused = client.post("/queries/shop/pause")
        assert refused.status_code == 400 and "--serve" in refused.json()["hint"]
        assert client.get("/queries/shop/figures").json()["actions"] == []
        server.control("shop", running)
        assert client.get("/queries/shop/figures").json()["actions"] == ["pause", "resume"]
        assert client.post("/queries/shop/pause").json()["message"] == "query shop is paused"
        assert client.post("/queries/shop/resume").status_code == 200
        assert client.post("/queries/shop/restart").status_code == 200
        assert client.delete("/queries/shop").status_code == 400
    assert running.told == ["pause", "resume", "pause", "resume"]


def test_a_program_is_compared_with_its_file_by_the_process_that_runs_it(tmp_path: Path) -> None:
    with (
        QueryTables(open_broker(tmp_path), Settings(), ["shop"]) as database,
        Server(database, port=0) as server,
        httpx.Client(base_url=server.url, timeout=30) as client,
    ):
        elsewhere = client.post("/queries/shop/diff")
        assert (elsewhere.status_code, "potok diff" in elsewhere.json()["hint"]) == (400, True)
        server.compare("shop", lambda: [{"step": "counts", "what": "other keys", "fits": False}])
        found = client.post("/queries/shop/diff").json()
        assert found == {
            "query": "shop",
            "changes": [{"step": "counts", "what": "other keys", "fits": False}],
            "fits": False,
        }
        assert "diff" in client.get("/queries/shop/figures").json()["actions"]

        def broken() -> list[dict[str, object]]:
            raise CannotCompare("shop.py", "it has no topology")

        server.compare("shop", broken)
        failed = client.post("/queries/shop/diff")
        assert (failed.status_code, failed.json()["detail"]) == (
            400,
            '"shop.py" cannot be compared: it has no topology',
        )

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from operators.core.in_process import InProcess
from potok.clock import now_ms
from potok.dsl.builder import StreamsBuilder
from potok.server.server import Server
from potok.settings import Settings
from potok.snapshots.source_status import CAPTURE, GATEWAY, SILENT_MS, encode_status, status_key
from potok.statements.queries.query_tables import QueryTables
from statements.playing import Play


def report(play: Play, kind: str, name: str, *, ago_ms: int = 0, running: bool = True, **status: object) -> None:
    data = encode_status(now_ms() - ago_ms, "process 7 on vm", running=running, status=status)
    play.broker.set_metadata({status_key(kind, name): data})


def test_listeners_are_shown_wherever_they_run(client: httpx.Client, shop: Play) -> None:
    report(shop, GATEWAY, "metrics", topic="metrics", counts={"received": 5, "lost": {"malformed": 1}})
    report(shop, CAPTURE, "shop-db", state="streaming", changes=3, lag_bytes=70, problem=None, snapshots={})
    (listener,) = client.get("/gateway").json()["listeners"]
    assert (listener["name"], listener["process"], listener["process_state"]) == (
        "metrics",
        "process 7 on vm",
        "running",
    )
    assert listener["counts"] == {"received": 5, "lost": {"malformed": 1}}
    (capture,) = client.get("/captures").json()["captures"]
    assert (capture["name"], capture["state"], capture["lag_bytes"]) == ("shop-db", "streaming", 70)


@pytest.mark.parametrize(
    ("ago_ms", "running", "state"),
    [(0, True, "running"), (SILENT_MS + 60_000, True, "died"), (SILENT_MS + 60_000, False, "stopped")],
)
def test_a_process_that_reports_no_more_has_died(
    client: httpx.Client, shop: Play, ago_ms: int, running: bool, state: str
) -> None:
    report(shop, GATEWAY, "metrics", ago_ms=ago_ms, running=running)
    assert client.get("/gateway").json()["listeners"][0]["process_state"] == state


def test_destinations_outside_the_log_are_listed_with_their_guarantee(tmp_path: Path) -> None:
    builder = StreamsBuilder("shop")
    builder.stream("orders", value="user string").to_files(tmp_path / "files", name="archive")
    with InProcess(builder, directory=tmp_path) as driver:
        driver.send("orders", {"user": "ann"}, timestamp=1)
        driver.run()
        with (
            QueryTables(driver.broker, Settings(), ["shop"]) as database,
            Server(database, port=0) as server,
            httpx.Client(base_url=server.url) as client,
        ):
            (sink,) = client.get("/sinks").json()["sinks"]
    assert (sink["query"], sink["step"], sink["records"], sink["guarantee"]) == ("shop", "archive", 1, "exactly_once")


def test_every_path_of_the_console_is_described(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    wanted = {
        "/overview", "/overview/live", "/queries/{query_id}/live", "/queries/{query_id}/state", "/topics",
        "/topics/{name}",
        "/topics/{name}/records", "/query-tables", "/queries/{query_id}/tables/{table}", "/dead-letters",
        "/queries/{query_id}/dead-letters/replay", "/gateway", "/captures", "/sinks", "/aggregates", "/open-matches",
        "/cluster", "/groups/{name}", "/queries/{query_id}/{action}",
    }  # fmt: skip
    assert wanted <= paths.keys()
    assert all(each["summary"] for path in wanted for each in paths[path].values())

"""Metrics and health over HTTP, with and without tokens."""

from __future__ import annotations

import subprocess

import httpx
import pytest

from potok.errors import LogError
from potok.monitoring.health import Problem
from potok.monitoring.monitor import Monitor
from potok.server.access.tokens import Tokens
from potok.server.operations.operations_server import OperationsServer
from potok.server.server import Server
from server.conftest import sell
from statements.playing import Play

TOKEN = "read-token-0123456789"


def test_a_server_exposes_its_queries(shop: Play, client: httpx.Client) -> None:
    sell(shop, ("o1", "ann", 5.0))
    text = client.get("/metrics").text
    [totals] = [name for name in shop.database.catalog_state().queries if "TOTALS" in name]
    assert f'potok_records_total{{query="{totals}",direction="in"}} 1' in text
    assert "potok_push_queries 0" in text


def test_reads_of_tables_are_timed(shop: Play, client: httpx.Client) -> None:
    sell(shop, ("o1", "ann", 5.0))
    client.get("/tables/TOTALS/ann").raise_for_status()
    client.get("/tables/HOURLY/ann").raise_for_status()
    client.post("/sql", json={"sql": "SELECT * FROM totals;"}).raise_for_status()
    lines = client.get("/metrics").text.splitlines()
    assert 'potok_pull_query_seconds_count{kind="key"} 2' in lines
    assert 'potok_pull_query_seconds_count{kind="sql"} 1' in lines


def test_the_format_is_negotiated(client: httpx.Client) -> None:
    assert client.get("/metrics").headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = client.get("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0,*/*;q=0.1"})
    assert found.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert found.headers["vary"] == "Accept"
    assert found.text.endswith("# EOF\n")


def test_promtool_finds_nothing_wrong_with_what_a_server_exposes(
    shop: Play, client: httpx.Client, promtool: str
) -> None:
    sell(shop, ("o1", "ann", 5.0))
    body = client.get("/metrics").content
    found = subprocess.run([promtool, "check", "metrics"], input=body, capture_output=True, check=False)
    assert (found.returncode, found.stderr) == (0, b"")


def test_metrics_need_a_token_that_may_read_and_health_needs_none(shop: Play) -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": f"read={TOKEN} write=write-token-0123456789"})
    with Server(shop.database, port=0, tokens=tokens) as server, httpx.Client(base_url=server.url) as client:
        assert client.get("/metrics").status_code == 401
        wrong = {"Authorization": "Bearer write-token-0123456789"}
        assert client.get("/metrics", headers=wrong).status_code == 403
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert client.get("/metrics", headers=right).status_code == 200
        assert client.get("/livez").json() == {"ok": True, "reasons": {}}
        assert client.get("/livez", headers=right).json() == {"ok": True, "reasons": {}, "problems": []}


@pytest.mark.parametrize("has_token", [False, True])
def test_only_callers_who_may_read_see_the_names_in_problems(shop: Play, has_token: bool) -> None:
    tokens = Tokens.load(environ={"POTOK_TOKENS": f"read={TOKEN}"})
    monitor = Monitor()
    monitor.health.ready.append(lambda: [Problem("failed", "secret", "a password is wrong")] * 2)
    with Server(shop.database, port=0, tokens=tokens, monitor=monitor) as server:
        headers = {"Authorization": f"Bearer {TOKEN}"} if has_token else {}
        found = httpx.get(f"{server.url}/readyz", headers=headers)
    assert found.status_code == 503
    assert found.json()["reasons"] == {"failed": 2}
    assert ("secret" in found.text) is has_token


def test_a_check_that_cannot_be_made_is_a_problem() -> None:
    monitor = Monitor()

    def away() -> list[Problem]:
        raise LogError("the log does not answer")

    monitor.health.ready.append(away)
    with OperationsServer(monitor, "127.0.0.1", 0) as server:
        found = httpx.get(f"{server.url}/readyz")
        assert (found.status_code, found.json()["reasons"]) == (503, {"unknown": 1})
        assert httpx.get(f"{server.url}/livez").status_code == 200


def test_a_port_for_metrics_serves_nothing_else_and_nobody_from_other_sites() -> None:
    with OperationsServer(Monitor(), "127.0.0.1", 0) as server:
        assert "potok_build_info" in httpx.get(f"{server.url}/metrics").text
        assert httpx.get(f"{server.url}/tables").status_code == 404
        assert httpx.post(f"{server.url}/metrics").status_code == 405
        assert httpx.get(f"{server.url}/metrics", headers={"Host": "evil.example"}).status_code == 403

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from potok.server.console.app import STATIC, create_app
from potok.server.console.feed import UnknownTable
from potok.server.console.server import Server


class Small:
    """A feed of one table."""

    def topology(self) -> dict[str, Any]:
        return {"query": "shop", "nodes": [], "tables": [{"name": "counts"}], "panels": []}

    def snapshot(self) -> dict[str, Any]:
        return {"at": 1, "query": "shop", "state": "running", "error": "", "lag": 3}

    def rows(self, table: str, find: str, limit: int) -> dict[str, Any]:
        if table != "counts":
            raise UnknownTable("shop", table)
        return {"rows": [{"key": f"{find}{n}", "value": {1: b"x"}} for n in range(limit)], "more": True}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with Server(create_app(Small(), interval=0.05), port=0) as server, httpx.Client(base_url=server.url) as client:
        yield client


def test_the_page_answers_to_the_address_of_this_machine_alone(client: httpx.Client) -> None:
    for path in ("/", "/api/snapshot", "/static/page.css"):
        assert client.get(path, headers={"Host": "evil.example"}).status_code == 400
    assert client.get("/api/snapshot", headers={"Host": "localhost:1234"}).status_code == 200


def test_the_page_is_served_with_all_that_it_names(client: httpx.Client) -> None:
    page = client.get("/")

    assert page.headers["content-type"].startswith("text/html")
    for path in re.findall(r'(?:href|src)="(/static/[^"#]+)', page.text):
        assert client.get(path).status_code == 200, path


def test_the_page_needs_nothing_from_elsewhere() -> None:
    for file in STATIC.iterdir():
        for url in re.findall(r"https?://[^\s\"'`)]+", file.read_text()):
            assert url == "http://www.w3.org/2000/svg", f"{file.name} names {url}"


def test_every_module_that_a_module_imports_is_there() -> None:
    for file in STATIC.glob("*.js"):
        for name in re.findall(r'from "\./([^"]+)"', file.read_text()):
            assert (STATIC / name).is_file(), f"{file.name} imports {name}"


def test_modules_are_small() -> None:
    for file in STATIC.glob("*.js"):
        assert len(file.read_text().splitlines()) <= 250, file.name


def test_the_topology_and_a_snapshot_are_json(client: httpx.Client) -> None:
    assert client.get("/api/topology").json()["query"] == "shop"

    snapshot = client.get("/api/snapshot").json()

    assert "history" in snapshot


def test_rows_of_a_table_are_found_by_key(client: httpx.Client) -> None:
    answer = client.get("/api/tables/counts", params={"find": "u", "limit": 2})

    assert [row["key"] for row in answer.json()["rows"]] == ["u0", "u1"]


def test_a_value_that_json_lacks_is_shown_as_text(client: httpx.Client) -> None:
    assert client.get("/api/tables/counts?limit=1").json()["rows"][0]["value"] == {"1": "b'x'"}


def test_a_table_that_does_not_exist_is_not_found(client: httpx.Client) -> None:
    answer = client.get("/api/tables/nothing")

    assert answer.status_code == 404
    assert answer.json() == {
        "error": 'query "shop" has no table "nothing"',
        "hint": "GET /api/topology lists the tables",
    }


@pytest.mark.parametrize("limit", [0, 501, -1])
def test_a_request_for_too_many_rows_is_refused(client: httpx.Client, limit: int) -> None:
    assert client.get(f"/api/tables/counts?limit={limit}").status_code == 422


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/snapshot", "/api/tables/nothing"])
def test_every_answer_forbids_foreign_code(client: httpx.Client, path: str) -> None:
    assert client.get(path).headers["content-security-policy"].startswith("default-src 'self'")


def test_nothing_outside_the_static_files_is_served(client: httpx.Client) -> None:
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404

"""An app behind a port: its pages, its tables, and what they hold as of the last committed batch."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import potok.faust as faust
from faust.shop import HOUR, HourlyStats, Order, order
from log.waiting import until
from operators.core.in_process import InProcess
from potok.errors import PotokError
from potok.faust import hosted
from potok.faust.pages.request import Request


class Shop:
    """A program, and its pages."""

    def __init__(self, directory: Path) -> None:
        self.meanwhile: Callable[[], Any] = lambda: None
        self.app = app = faust.App("shop", broker=f"file:{directory}")
        orders = app.topic("orders", value_type=Order)
        self.counts = counts = app.Table("order_counts", default=int, changelog_topic=True)
        self.numbers = numbers = app.Table("numbers", default=int)
        self.hourly = hourly = app.Table(
            "hourly-stats", default=lambda: HourlyStats("", 0.0, 0), changelog_topic="hours"
        ).tumbling(timedelta(hours=1), expires=timedelta(hours=24))

        @app.agent(orders)
        async def count(stream: Any) -> None:
            async for item in stream:
                counts[item.user_id] += 1
                numbers[int(item.amount)] += 1
                hourly[item.user_id].count += 1

        @app.page("/stats/{user_id}/", methods=["GET", "POST"])
        async def stats(web: Any, request: Request, user_id: str) -> Any:
            if request.method == "POST":
                await orders.send(value=Order.from_data(await request.json()))
                return web.json({"sent": True}, status=202)
            seen = counts.get(user_id, 0)
            await asyncio.sleep(0)
            return web.json({"n": seen, "again": counts[user_id], "users": dict(counts.items())})

        @app.agent(app.topic("questions"), sink=[])
        async def answer(stream: Any) -> Any:
            async for question in stream:
                yield {"asked": question}

        @app.page("/ask/{word}")
        async def ask(web: Any, request: Request, word: str) -> Any:
            return await answer.ask(word)

        @app.page("/between/")
        async def between(web: Any, request: Request) -> Any:
            first = counts.get("u1")
            self.meanwhile()
            second = counts.get("u1")
            await asyncio.sleep(0)
            return web.json([first, second, counts.get("u1")])

        @app.page("/windows/{user_id}/")
        async def windows(web: Any, request: Request, user_id: str) -> Any:
            seen = hourly[user_id]
            return web.json(
                {
                    "now": seen.now().count,
                    "current": seen.current().count,
                    "value": seen.value(),
                    "before": seen.delta(timedelta(hours=1)).count,
                    "attribute": seen.count,
                }
            )


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@contextmanager
def served(shop: Shop, **options: Any) -> Iterator[httpx.Client]:
    with hosted(shop.app, port=0, **options) as server:
        assert server is not None
        with httpx.Client(base_url=server.url, timeout=30) as client:
            yield client


@contextmanager
def driven(shop: Shop, tmp_path: Path, *orders: Any) -> Iterator[tuple[InProcess, httpx.Client]]:
    with InProcess(shop.app, directory=tmp_path) as driver:
        for number, (user, amount, at) in enumerate(orders):
            driver.send("orders", order(number, user, amount), timestamp=at)
        driver.run(more_to_come=True)
        with served(shop) as client:
            yield driver, client


def test_pages_answer_before_the_first_batch_with_tables_that_are_empty(shop: Shop) -> None:
    with served(shop) as client:
        assert client.get("/stats/u1/").json() == {"n": 0, "again": 0, "users": {}}
        assert client.get("/windows/u1/").json()["value"] == {"user_id": "", "total": 0.0, "count": 0}
        assert client.get("/tables/order_counts/u1").status_code == 404
        assert client.get("/healthcheck").json()["isHealthy"]


def test_a_page_sees_the_last_committed_batch_and_sends_durably(shop: Shop, tmp_path: Path) -> None:
    with driven(shop, tmp_path, ("u1", 1.0, 0)) as (driver, client):
        assert client.get("/stats/u1/").json() == {"n": 1, "again": 1, "users": {"u1": 1}}
        assert client.post("/stats/u1/", json=order(2, "u1", 5.0)).status_code == 202
        assert client.get("/stats/u1/").json()["n"] == 1
        driver.run(more_to_come=True)
        assert client.get("/stats/u1/").json()["n"] == 2


def test_what_a_page_reads_without_waiting_is_of_one_batch(shop: Shop, tmp_path: Path) -> None:
    asked, done = threading.Event(), threading.Event()

    def meanwhile() -> None:
        asked.set()
        assert done.wait(60)

    with driven(shop, tmp_path, ("u1", 1.0, 0)) as (driver, client), ThreadPoolExecutor(1) as pool:
        shop.meanwhile = meanwhile
        found = pool.submit(lambda: client.get("/between/").json())
        assert asked.wait(60)
        driver.send("orders", order(7, "u1", 1.0))
        driver.run(more_to_come=True)
        done.set()
        assert found.result(60) == [1, 1, 2]


def test_a_page_asks_an_agent_and_waits_for_what_it_yields(shop: Shop, tmp_path: Path) -> None:
    with driven(shop, tmp_path) as (driver, client), ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: client.get("/ask/why").json())
        until(lambda: (driver.run(more_to_come=True), found.done())[1])
        assert found.result() == {"asked": "why"}


def test_windows_are_read_by_processing_time_or_by_the_latest_record(shop: Shop, tmp_path: Path) -> None:
    with driven(shop, tmp_path, ("u1", 1.0, 0), ("u1", 1.0, HOUR), ("u1", 1.0, HOUR)) as (_, client):
        reported = client.get("/windows/u1/").json()
    assert (reported["now"], reported["current"], reported["before"], reported["attribute"]) == (0, 2, 1, 2)
    assert reported["value"]["count"] == 2


def test_tables_of_an_app_are_served_as_all_tables_are(shop: Shop, tmp_path: Path) -> None:
    with driven(shop, tmp_path, ("u1", 1.0, 0), ("u2", 1.0, 0), ("u1", 2.0, HOUR)) as (_, client):
        assert client.get("/tables/order_counts/u1").json() == {"KEY": "u1", "VALUE": 2}
        assert client.get("/tables/ORDER_COUNTS?prefix=u").json()["rows"] == [
            {"KEY": "u1", "VALUE": 2},
            {"KEY": "u2", "VALUE": 1},
        ]
        assert client.get("/tables/numbers/1").json() == {"KEY": "1", "VALUE": 2}
        (window,) = client.get("/tables/hourly-stats/u1?at=0").json()["rows"]
        assert (window["WINDOWSTART"], window["COUNT"]) == (0, 1)
        tables = {table["name"]: table["windowed"] for table in client.get("/tables").json()["tables"]}
        assert tables == {"ORDER_COUNTS": False, "NUMBERS": False, "HOURLY_STATS": True}
        (query,) = client.get("/queries").json()["queries"]
        assert query["query_id"] == "shop"


def test_changes_come_from_the_topic_that_a_table_names(shop: Shop, tmp_path: Path) -> None:
    with driven(shop, tmp_path, ("u1", 1.0, 0), ("u1", 1.0, HOUR)) as (_, client):
        assert changes(client, "order_counts", 1) == [({"KEY": "u1"}, {"KEY": "u1", "VALUE": 2})]
        windows = changes(client, "hourly-stats", 2)
        assert [(key["WINDOWSTART"], row["COUNT"]) for key, row in windows] == [(0, 1), (HOUR, 1)]
        refused = client.get("/tables/numbers/changes")
        assert (refused.status_code, "changelog_topic=" in refused.json()["hint"]) == (404, True)


def changes(client: httpx.Client, table: str, count: int) -> list[tuple[Any, Any]]:
    found = []
    with client.stream("GET", f"/tables/{table}/changes?from=beginning") as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                reported = json.loads(line[6:])
                found.append((reported["key"], reported["row"]))
            if len(found) == count:
                return found
    raise AssertionError(found)


def test_statements_over_http_read_the_app_and_change_nothing(shop: Shop, tmp_path: Path) -> None:
    with driven(shop, tmp_path, ("u1", 1.0, 0), ("u2", 3.0, 0)) as (driver, client):
        reported = client.post("/sql", json={"sql": "SELECT user_id, amount FROM orders WHERE amount > 2;"}).json()
        assert reported["results"][0]["rows"] == [["u2", 3.0]]
        insert = "INSERT INTO orders (order_id, user_id, amount, items) VALUES ('o9', 'u2', 1.0, ARRAY['a']);"
        assert client.post("/sql", json={"sql": insert}).status_code == 200
        driver.run(more_to_come=True)
        assert client.get("/tables/order_counts/u2").json() == {"KEY": "u2", "VALUE": 2}
        assert driver.dead_letters() == []
        refused = client.post("/sql", json={"sql": "CREATE STREAM x AS SELECT * FROM orders;"})
        assert (refused.status_code, refused.json()["detail"]) == (
            400,
            "the definitions of an app belong to its program",
        )


def test_an_app_is_not_served_to_others_without_tokens(shop: Shop) -> None:
    with pytest.raises(PotokError, match="without tokens cannot listen on"), hosted(shop.app, host="0.0.0.0", port=0):
        raise AssertionError


def test_the_default_port_may_be_in_use_if_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = faust.App("bare", broker=f"file:{tmp_path}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr("potok.faust.pages.pages.DEFAULT_PORT", taken.getsockname()[1])
        with hosted(app) as server:
            assert server is None
        assert "tables are not served: cannot listen" in caplog.text
        app.page("/x")(lambda web, request: web.text(""))
        with pytest.raises(PotokError, match="cannot listen"), hosted(app):
            raise AssertionError

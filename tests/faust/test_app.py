"""The app itself: URLs, commands, pages, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import potok.faust as faust
from faust.shop import order, shop
from operators.core.in_process import InProcess
from potok.errors import PotokError
from potok.faust.services.service import NotCron, next_time
from potok.faust.services.services import Services, every
from potok.faust.settings.options import broker_url, state_url
from potok.faust.web import answer


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("kafka://a:1", "kafka://a:1"),
        ("kafka://a:1;kafka://b:2", "kafka://a:1,b:2"),
        (["aiokafka://a:1", "b:2"], "kafka://a:1,b:2"),
        ("file:./data", "file:./data"),
        (None, None),
    ],
)
def test_brokers_of_faust_are_found(given: Any, url: str | None) -> None:
    assert broker_url(given) == url


def test_workers_use_the_stores_next_to_the_log() -> None:
    assert [state_url(url) for url in ("rocksdb://", "memory://", "redis://h")] == [None, None, "redis://h"]


def test_tables_are_read_outside_of_agents_and_not_written(tmp_path: Path) -> None:
    app = shop()
    app.broker = f"file:{tmp_path}"
    counts = app.tables["order_counts"]
    with InProcess(app, directory=tmp_path) as driver:
        driver.send("orders", order(1, "u1", 10.0))
        driver.run()
        assert (counts.get("u1", 0), counts["u2"], "u1" in counts, dict(counts.items())) == (1, 0, True, {"u1": 1})
        assert app.tables["hourly_stats"].windowed.get("u1").total == 10.0  # type: ignore[union-attr]
        with pytest.raises(PotokError, match="only by agents"):
            counts["u1"] = 5


def test_a_page_answers_with_what_the_tables_hold(tmp_path: Path) -> None:
    app = shop()
    app.broker = f"file:{tmp_path}"

    @app.page("/stats/{user_id}/")
    async def stats(web: Any, request: Any, user_id: str) -> Any:
        return web.json({"orders": app.tables["order_counts"].get(user_id, 0)})

    with InProcess(app, directory=tmp_path) as driver:
        driver.send("orders", order(1, "u1", 10.0))
        driver.run()
        (route,) = app.web_routes()
        response = answer(asyncio.run(route.endpoint(None, user_id="u1")))
    assert (route.path, route.methods, response.status, json.loads(response.body)) == (
        "/stats/{user_id}/",
        ("GET",),
        200,
        {"orders": 1},
    )


def test_a_view_class_has_the_methods_that_it_defines() -> None:
    app = faust.App("app")

    @app.page("/x")
    class Page(faust.View):
        async def post(self, request: Any) -> Any:
            return self.text("done", status=201)

    assert app.web_routes()[0].methods == ("POST",)


def test_commands_list_send_and_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = shop()
    app.broker = f"file:{tmp_path}"
    app.main(["agents", "--json"])
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["@process_orders", "@hourly_aggregation"]
    app.main(["tables"])
    assert "tumbling 1h" in capsys.readouterr().out
    app.main(["explain"])
    assert "process_orders, hourly_aggregation: one task" in capsys.readouterr().out
    app.main(["send", "@process_orders", json.dumps(order(1, "u1", 10.0)), "-k", "u1"])
    with InProcess(app, directory=tmp_path) as driver:
        driver.run()
        assert driver.table("order_counts").all() == {"u1": 1}


def test_a_command_that_names_what_is_not_there_says_what_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        shop().main(["send", "nowhere", "1"])
    assert "it has: high-value-orders, orders" in capsys.readouterr().err


def test_two_tables_of_one_name_and_agents_that_are_none_are_refused() -> None:
    app = faust.App("app")
    app.Table("t")
    with pytest.raises(PotokError, match='there is a table "t" already'):
        app.Table("t")
    with pytest.raises(PotokError, match="is not an agent"):
        app.agent("x")(lambda stream: None)


@pytest.mark.parametrize(
    ("cron", "after", "due"),
    [
        ("*/5 * * * *", "2026-01-01T00:03", "2026-01-01T00:05"),
        ("0 9 * * mon", "2026-01-01T00:00", "2026-01-05T09:00"),
        ("30 1 29 2 *", "2026-01-01T00:00", "2028-02-29T01:30"),
        ("0 0 13 * fri", "2026-01-01T00:00", "2026-01-02T00:00"),
        ("0 0 13 * */5", "2026-01-01T00:00", "2026-01-02T00:00"),
    ],
)
def test_cron_finds_the_next_time(cron: str, after: str, due: str) -> None:
    found = next_time(cron, datetime.fromisoformat(after).replace(tzinfo=UTC))
    assert found == datetime.fromisoformat(due).replace(tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "* * * *", "* * * * * *", "61 * * * *", "*/0 * * * *", "x * * * *"])
def test_what_is_not_a_time_for_cron_is_refused(text: str) -> None:
    with pytest.raises(NotCron):
        next_time(text, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("cron", "after", "due"),
    [
        ("*/30 * * * *", "2026-10-25T00:40+00:00", "2026-10-25T01:00+00:00"),
        ("30 2 * * *", "2026-03-28T12:00+00:00", "2026-03-29T01:00+00:00"),
    ],
    ids=["an hour that comes twice", "an hour that is left out"],
)
def test_cron_follows_the_clock_changes_of_a_zone(cron: str, after: str, due: str) -> None:
    found = next_time(cron, datetime.fromisoformat(after).astimezone(ZoneInfo("Europe/Berlin")))
    assert found is not None and found.astimezone(UTC) == datetime.fromisoformat(due)


def test_timers_are_called_again_also_after_they_raised() -> None:
    calls: list[int] = []
    ended = threading.Event()

    async def tick() -> None:
        calls.append(1)
        if len(calls) == 3:
            ended.set()
        raise RuntimeError("once more")

    with Services(None, [every(tick, 0.001)]):
        assert ended.wait(30)
    assert len(calls) >= 3


def test_options_of_faust_that_do_nothing_are_said_and_others_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "potok.faust"):
        faust.App("app", topic_replication_factor=8)
    assert 'app "app": topic_replication_factor= not used here' in caplog.text
    with pytest.raises(PotokError, match="no option topic_partition="):
        faust.App("app", topic_partition=8)
    with pytest.raises(PotokError, match="consumer_auto_offset_reset= cannot be 'first'"):
        faust.App("app", consumer_auto_offset_reset="first")

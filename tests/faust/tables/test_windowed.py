"""Tables with windows: which window is meant, when windows go, and who hears of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import potok.faust as faust
from operators.core.in_process import InProcess
from potok.errors import TopologyError

MINUTE = 60_000


class Click(faust.Record):
    user: str
    at: datetime | None = None


def clicks_app(table: Any, work: Any) -> faust.App:
    """An app whose one agent does `work(windows, click)` for each click, and keeps what that returns as "seen"."""
    app = faust.App("app")
    topic = app.topic("clicks", value_type=Click)
    windows, seen = table(app), app.Table("seen", default=list)

    @app.agent(topic)
    async def count(clicks: Any) -> None:
        async for click in clicks:
            seen["all"].append(work(windows, click))

    return app


def starts(driver: InProcess, user: str = "u") -> list[tuple[int, Any]]:
    return [(key.start_ms // MINUTE, value) for key, value in driver.table("clicks_of").windows(user)]


def add(windows: Any, click: Any) -> None:
    windows[click.user] += 1


def test_each_window_counts_its_own_records_and_a_record_may_be_in_several() -> None:
    def table(app: faust.App) -> Any:
        return app.Table("clicks_of", default=int).hopping(timedelta(minutes=2), timedelta(minutes=1))

    with InProcess(clicks_app(table, add)) as driver:
        for minute in (1, 1, 2):
            driver.send("clicks", {"user": "u"}, timestamp=minute * MINUTE + 5)
        driver.run(1)
        assert starts(driver) == [(0, 2), (1, 3), (2, 1)]


def test_an_expired_window_is_deleted_and_its_value_is_reported() -> None:
    app = faust.App("app")
    topic, closed = app.topic("clicks", value_type=Click), app.topic("closed")

    def on_close(key: Any, value: Any) -> None:
        closed.send_soon(key=key[0], value={"start": key[1][0], "end": key[1][1], "clicks": value})

    windows = app.Table("clicks_of", default=int, on_window_close=on_close).tumbling(60, expires=60)

    @app.agent(topic)
    async def count(clicks: Any) -> None:
        async for click in clicks:
            windows[click.user] += 1

    with InProcess(app, shards=3) as driver:
        for minute in (0, 0, 1):
            driver.send("clicks", {"user": "u"}, timestamp=minute * MINUTE + 5)
        driver.run()
        assert starts(driver) == [(0, 2), (1, 1)]
        assert driver.read("closed") == []
        driver.advance_to(2 * MINUTE)
        assert starts(driver) == [(1, 1)]
        assert [(r.key, r.value) for r in driver.read("closed")] == [("u", {"start": 0.0, "end": 60.0, "clicks": 2})]
        driver.advance_to(10 * MINUTE)
        assert starts(driver) == []
        assert [record.timestamp_ms for record in driver.read("closed")] == [MINUTE - 1, 2 * MINUTE - 1]


def test_a_record_whose_window_is_over_is_a_dead_letter() -> None:
    def table(app: faust.App) -> Any:
        return app.Table("clicks_of", default=int).tumbling(60, expires=60)

    for batch in (None, 1):
        with InProcess(clicks_app(table, add)) as driver:
            for minute in (5, 0, 4):
                driver.send("clicks", {"user": "u"}, timestamp=minute * MINUTE)
            driver.run(batch)
            assert starts(driver) == [(4, 1), (5, 1)]
            assert driver.reasons() == [("count", "error")]
            assert "has expired for this record" in driver.dead_letters()[0].error


def test_a_function_that_raises_at_the_close_makes_a_dead_letter_of_the_window() -> None:
    def table(app: faust.App) -> Any:
        return app.Table("clicks_of", default=int, on_window_close=lambda _, value: 1 / 0).tumbling(60, expires=0)

    with InProcess(clicks_app(table, add)) as driver:
        driver.send("clicks", {"user": "u"}, timestamp=0)
        driver.run()
        driver.advance_to(5 * MINUTE)
        assert starts(driver) == []
        assert driver.reasons() == [("agents", "error")]


def test_windows_relative_to_a_field_are_those_of_the_field() -> None:
    def table(app: faust.App) -> Any:
        return app.Table("clicks_of", default=int).tumbling(60).relative_to_field(Click.at)

    with InProcess(clicks_app(table, add)) as driver:
        at = datetime.fromtimestamp(3 * 60 + 1, UTC).isoformat()
        driver.send("clicks", {"user": "u", "at": at}, timestamp=9 * MINUTE)
        driver.run()
        assert starts(driver) == [(3, 1)]


def test_value_current_and_delta_look_at_different_windows() -> None:
    def look(windows: Any, click: Any) -> Any:
        windows[click.user] += 1
        each = windows[click.user]
        return each.value(), each.current(), each.delta(timedelta(minutes=1)), each == each.value()

    def table(app: faust.App) -> Any:
        return app.Table("clicks_of", default=int).tumbling(60).relative_to_stream()

    with InProcess(clicks_app(table, look)) as driver:
        for minute in (0, 0, 1):
            driver.send("clicks", {"user": "u"}, timestamp=minute * MINUTE)
        driver.run()
        assert driver.table("seen").get("all") == [(1, 1, 0, True), (2, 2, 0, True), (1, 1, 2, True)]


def test_windows_relative_to_now_live_by_processing_time() -> None:
    def table(app: faust.App) -> Any:
        return app.Table("clicks_of", default=int).tumbling(3600, expires=3600).relative_to_now()

    with InProcess(clicks_app(table, add)) as driver:
        driver.send("clicks", {"user": "u"}, timestamp=0)
        driver.run()
        assert [value for _, value in starts(driver)] == [1]
        driver.wait("3 hours")
        assert starts(driver) == []


def test_on_window_close_without_an_end_is_refused() -> None:
    app = faust.App("app")
    with pytest.raises(TopologyError, match="never close"):
        app.Table("t", default=int, on_window_close=print).tumbling(60)

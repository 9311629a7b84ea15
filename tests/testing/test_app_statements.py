"""The test driver runs the statements of an app next to its agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faust.shop import Order, order, shop
from operators.core.in_process import InProcess
from potok.errors import TopologyError
from potok.snapshots.tables import NoSuchTable


def test_the_test_driver_runs_statements_and_agents_of_an_app(tmp_path: Path) -> None:
    app = shop()
    copies, seen = app.topic("copies", value_type=Order), app.Table("seen", default=int)

    @app.agent(copies)
    async def look(stream: Any) -> None:
        async for item in stream:
            seen[item.user_id] += 1

    app.sql("""
        CREATE STREAM copied WITH (KAFKA_TOPIC = 'copies') AS SELECT * FROM orders WHERE amount > 100;
        CREATE TABLE by_user AS SELECT user_id, COUNT(*) AS n FROM copied GROUP BY user_id;
    """)
    with InProcess(app, directory=tmp_path) as driver:
        for number, amount in enumerate((120.0, 20.0, 300.0)):
            driver.send("orders", order(number, "u1", amount), timestamp=number)
        driver.run()
        assert driver.table("seen").all() == {"u1": 2}
        assert driver.query("SELECT n FROM by_user WHERE user_id = 'u1'") == [{"N": 2}]
        assert driver.table("by_user").get("u1") == driver.table("BY_USER").get("u1") is not None
        driver.restart()
        driver.send("orders", order(3, "u1", 400.0), timestamp=3)
        driver.run()
        assert driver.query("SELECT n FROM by_user WHERE user_id = 'u1'") == [{"N": 3}]
        with pytest.raises(NoSuchTable):
            driver.table("nobody")


def test_an_app_without_statements_has_none_to_ask(tmp_path: Path) -> None:
    with InProcess(shop(), directory=tmp_path) as driver, pytest.raises(TopologyError, match="no statements"):
        driver.query("SELECT * FROM orders")

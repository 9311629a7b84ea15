"""Settings of an app that mean something here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import potok.faust as faust
from faust.shop import Order, order
from operators.core.in_process import InProcess


@pytest.mark.parametrize(("start_at", "counted"), [("earliest", 2), ("latest", 1), (None, 2)])
def test_an_app_starts_where_its_setting_says(tmp_path: Path, start_at: str | None, counted: int) -> None:
    app = faust.App("shop", broker=f"file:{tmp_path}", consumer_auto_offset_reset=start_at)
    orders, counts = app.topic("orders", value_type=Order), app.Table("counts", default=int)

    @app.agent(orders)
    async def count(stream: Any) -> None:
        async for item in stream:
            counts[item.user_id] += 1

    app.sql("CREATE TABLE by_user AS SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id;")
    app.log().create_topic("orders", 1)
    orders.send_soon(value=Order.from_data(order(1, "u1", 1.0)))
    with InProcess(app, directory=tmp_path) as driver:
        driver.send("orders", order(2, "u1", 1.0))
        driver.run()
        assert driver.table("counts").all() == {"u1": counted}
        assert driver.query("SELECT n FROM by_user WHERE user_id = 'u1'") == [{"N": counted}]
        driver.send("orders", order(3, "u1", 1.0))
        driver.restart()
        driver.run()
        assert driver.table("counts").all() == {"u1": counted + 1}

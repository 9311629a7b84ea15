"""The program written for Faust, on Spark: its tables, its windows, its topic and its page."""

from __future__ import annotations

import asyncio
import json
import runpy
from pathlib import Path
from typing import Any

from potok.faust.web import answer
from potok.testing import TestDriver

PROGRAM = Path(__file__).parents[2] / "examples" / "faust_orders.py"
HOUR = 3_600_000


def test_the_program_counts_sends_and_answers(spark: Any, tmp_path: Path) -> None:
    app = runpy.run_path(str(PROGRAM))["app"]
    app.broker = f"file:{tmp_path}"
    with TestDriver(app, directory=tmp_path, partitions={"orders": 2}, spread=True, spark=True) as driver:
        for number, amount in enumerate((50.0, 150.0, 200.0)):
            value = {"order_id": f"o{number}", "user_id": "ann", "amount": amount, "items": ["book"]}
            driver.send("orders", value, timestamp=number * HOUR // 2, partition=0)
        driver.send("orders", {"order_id": "o9"}, timestamp=HOUR, partition=0)
        driver.run()
        windows = driver.table("hourly_stats").windows("ann")
        assert [(value["total"], value["count"]) for _, value in windows] == [(200.0, 2), (200.0, 1)]
        assert sorted(record.value["order_id"] for record in driver.read("high-value-orders")) == ["o1", "o2"]
        assert [letter.step for letter in driver.dead_letters()] == ["orders"]
        page = asyncio.run(app.web_routes()[0].endpoint(None, user_id="ann"))
        assert json.loads(answer(page).body) == {"user_id": "ann", "order_count": 3, "total_spent": 400.0}

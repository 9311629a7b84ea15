"""Statements of an app on Spark, next to its agents: each reads what the other writes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
import httpx
import pytest

import faust.shop
from faust.shop import Order, order, shop
from log.waiting import until
from potok.errors import PotokError
from potok.faust import hosted
from potok.spark.run import start

if TYPE_CHECKING:
    from pyspark import SparkContext

TIMEOUT_S = 120.0

# Spark's workers cannot import the tests.
cloudpickle.register_pickle_by_value(faust.shop)
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.mark.timeout(400)
def test_statements_run_with_the_agents_and_resume_after_a_restart(spark: SparkContext, tmp_path: Path) -> None:
    run(tmp_path, [order(1, "u1", 120.0), order(2, "u1", 20.0)], 1)
    run(tmp_path, [order(3, "u1", 300.0)], 2)


def run(directory: Path, orders: list[Any], large: int) -> None:
    program = shop()
    program.broker = f"file:{directory}"
    copies, seen = program.topic("copies", value_type=Order), program.Table("seen", default=int)

    @program.agent(copies)
    async def look(stream: Any) -> None:
        async for item in stream:
            seen[item.user_id] += 1

    program.sql("""
        CREATE STREAM copied WITH (KAFKA_TOPIC = 'copies') AS SELECT * FROM orders WHERE amount > 100;
        CREATE TABLE by_user AS SELECT user_id, COUNT(*) AS n FROM high_value_orders GROUP BY user_id;
    """)
    with hosted(program, port=0) as server:
        assert server is not None
        query = start(program, broker=program.broker, shards=2)
        try:
            with program.statements.at_work():
                for item in orders:
                    program.topics[0].send_soon(value=Order.from_data(item))
                until(lambda: program.sql("SELECT n FROM by_user WHERE user_id = 'u1'") == [{"N": large}], TIMEOUT_S)
                until(lambda: seen.get("u1") == large, TIMEOUT_S)
                reported = httpx.get(f"{server.url}/queries").json()["queries"]
                assert {item["query_id"]: item["state"] for item in reported} == {
                    "order-processor": "RUNNING",
                    "order-processor.copied": "RUNNING",
                    "order-processor.by_user": "RUNNING",
                }
                with pytest.raises(PotokError, match="the app is already running"):
                    program.sql("CREATE STREAM more AS SELECT * FROM orders;")
        finally:
            query.stop()
            query.wait()

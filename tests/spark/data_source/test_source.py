"""`spark.read.format("potok")` and `spark.readStream.format("potok")` in a PySpark session, without registration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder

ORDERS = [("a", 1.0), ("b", 2.0), ("a", 3.0), ("c", 4.0)]


@pytest.fixture
def session(spark: Any) -> SparkSession:
    return SparkSession.builder.getOrCreate()


def shop(directory: Path) -> InProcess:
    builder = StreamsBuilder("shop")
    builder.stream("orders", value="amount double").group_by_key().sum("amount", name="totals")
    return InProcess(builder, directory=directory, shards=2)


def produced(driver: InProcess) -> None:
    for at, (key, amount) in enumerate(ORDERS):
        driver.send("orders", {"amount": amount}, key, timestamp=1_000 * at)
    driver.run()


def read(session: SparkSession, directory: Path, **options: Any) -> DataFrame:
    return session.read.format("potok").options(broker=f"file:{directory}", **options).load()


def test_a_table_is_a_data_frame(session: SparkSession, tmp_path: Path) -> None:
    with shop(tmp_path) as driver:
        produced(driver)
    frame = read(session, tmp_path, table="totals")
    assert frame.schema.simpleString() == "struct<key:string,value:double>"
    assert sorted(map(tuple, frame.collect())) == [("a", 4.0), ("b", 2.0), ("c", 4.0)]
    assert frame.rdd.getNumPartitions() == 2


def test_filters_that_are_pushed_down_select_the_same_rows(session: SparkSession, tmp_path: Path) -> None:
    with shop(tmp_path) as driver:
        produced(driver)
    conf = "spark.sql.python.filterPushdown.enabled"
    session.conf.set(conf, "true")
    try:
        totals = read(session, tmp_path, table="totals")
        assert [tuple(row) for row in totals.where("key = 'a'").collect()] == [("a", 4.0)]
        assert sorted(row.key for row in totals.where("key > 'a' and value > 2").collect()) == ["c"]
        orders = read(session, tmp_path, topic="orders")
        assert sorted(row.offset for row in orders.where("offset >= 1 and offset < 3").collect()) == [1, 2]
    finally:
        session.conf.unset(conf)


def test_a_topic_is_a_data_frame_of_typed_values(session: SparkSession, tmp_path: Path) -> None:
    with shop(tmp_path) as driver:
        produced(driver)
    frame = read(session, tmp_path, topic="orders", key="string", value="amount double")
    found = frame.select("key", "value.amount", "topic", "offset").collect()
    assert [tuple(row) for row in found] == [(key, n, "orders", at) for at, (key, n) in enumerate(ORDERS)]


def test_a_topic_is_a_stream_that_resumes_at_its_checkpoint(session: SparkSession, tmp_path: Path) -> None:
    seen: list[list[int]] = []

    def run() -> None:
        frame = session.readStream.format("potok").options(broker=f"file:{tmp_path}/data", topic="orders").load()
        query = (
            frame.writeStream.foreachBatch(lambda df, _: seen.append(sorted(row.offset for row in df.collect())))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with shop(tmp_path / "data") as driver:
        produced(driver)
        run()
        produced(driver)
        run()
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_the_changes_of_a_table_are_a_stream(session: SparkSession, tmp_path: Path) -> None:
    seen: list[list[tuple[Any, ...]]] = []
    options = {"table": "totals", "changes": True, "copies": str(tmp_path / "copies")}

    def run() -> None:
        frame = session.readStream.format("potok").options(broker=f"file:{tmp_path}/data", **options).load()
        query = (
            frame.writeStream.foreachBatch(lambda df, _: seen.append(sorted(map(tuple, df.collect()))))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with shop(tmp_path / "data") as driver:
        produced(driver)
        run()
        driver.send("orders", {"amount": 0.5}, "b")
        driver.run()
        run()
    assert seen == [[("a", 4.0, "upsert"), ("b", 2.0, "upsert"), ("c", 4.0, "upsert")], [("b", 2.5, "upsert")]]

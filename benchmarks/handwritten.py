"""What a user would write without Potok: Structured Streaming over JSON files, with RocksDB state."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Rates, rates_of

SCHEMA = "order_id string, user_id string, amount double, items array<string>, created_at long"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(memory: str, jars: Sequence[Path] = ()) -> Any:
    import os

    from pyspark.sql import SparkSession

    from potok.java_runtime import find_java, java_home_for_spark
    from potok.settings import Settings

    os.environ["JAVA_HOME"] = str(java_home_for_spark(find_java(), Settings().cache_path))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[*,4]")
        .config("spark.driver.memory", memory)
        .config("spark.ui.enabled", "false")
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config("spark.sql.streaming.numRecentProgressUpdates", "10000")
        .getOrCreate()
    )


def orders(spark: Any, directory: str, files: int) -> Any:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).json(directory)


def count_and_sum(spark: Any, directory: str, files: int) -> list[Any]:
    from pyspark.sql import functions as f

    grouped = (
        orders(spark, directory, files)
        .filter("amount > 20")
        .groupBy("user_id")
        .agg(f.count("*").alias("n"), f.sum("amount").alias("total"))
    )
    return [start(grouped.writeStream.format("noop").outputMode("update"))]


def ctas(spark: Any, directory: str, files: int) -> list[Any]:
    """The counts of all users, and the changes of each batch written as JSON."""
    from pyspark.sql import functions as f

    out = tempfile.mkdtemp()
    counts = (
        orders(spark, directory, files)
        .groupBy("user_id")
        .agg(f.count("*").alias("order_count"), f.sum("amount").alias("total_amount"))
    )

    def write(changes: Any, batch: int) -> None:
        changes.write.json(f"{out}/{batch}")

    return [start(counts.writeStream.foreachBatch(write).outputMode("update"))]


def timed_orders(spark: Any, directory: str, files: int) -> Any:
    from pyspark.sql import functions as f

    stamped = orders(spark, directory, files).withColumn("at", f.timestamp_millis("created_at"))
    return stamped.withWatermark("at", "1 minute")


def windowed(spark: Any, directory: str, files: int, window: Any, mode: str) -> list[Any]:
    from pyspark.sql import functions as f

    grouped = (
        timed_orders(spark, directory, files)
        .groupBy("user_id", window)
        .agg(f.count("*").alias("n"), f.sum("amount").alias("total"))
    )
    return [start(grouped.writeStream.format("noop").outputMode(mode))]


def tumbling(spark: Any, directory: str, files: int) -> list[Any]:
    from pyspark.sql import functions as f

    return windowed(spark, directory, files, f.window("at", "10 minutes"), "update")


def hopping(spark: Any, directory: str, files: int) -> list[Any]:
    from pyspark.sql import functions as f

    return windowed(spark, directory, files, f.window("at", "10 minutes", "1 minute"), "update")


def session_windows(spark: Any, directory: str, files: int) -> list[Any]:
    """Spark gives sessions in append mode only."""
    from pyspark.sql import functions as f

    return windowed(spark, directory, files, f.session_window("at", "1 minute"), "append")


def stream_join(spark: Any, directory: str, files: int) -> list[Any]:
    from pyspark.sql import functions as f

    left = timed_orders(spark, f"{directory}/orders", files)
    right = (
        spark.readStream.schema("order_id string, paid double, paid_at long")
        .option("maxFilesPerTrigger", files)
        .json(f"{directory}/payments")
        .withColumn("paid_time", f.timestamp_millis("paid_at"))
        .withWatermark("paid_time", "1 minute")
        .withColumnRenamed("order_id", "paid_order")
    )
    near = "order_id = paid_order and paid_time between at - interval 5 minutes and at + interval 5 minutes"
    joined = left.join(right, f.expr(near)).select("order_id", "user_id", "amount", "paid")
    return [start(joined.writeStream.format("noop").outputMode("append"))]


def table_join(spark: Any, directory: str, files: int) -> list[Any]:
    """A table that never changes: all that Structured Streaming has to join a stream with."""
    users = spark.read.schema("user_id string, name string, city string").json(f"{directory}/users")
    joined = orders(spark, f"{directory}/orders", files).join(users, "user_id")
    return [start(joined.select("user_id", "amount", "city").writeStream.format("noop").outputMode("append"))]


def three_branches(spark: Any, directory: str, files: int) -> list[Any]:
    """The seeds' topology as three queries, which is what Structured Streaming makes of three branches."""
    from pyspark.sql import functions as f

    high = orders(spark, directory, files).filter("amount > 100").withColumn("status", f.lit("HIGH_VALUE"))
    counts = orders(spark, directory, files).groupBy("user_id").count()
    hourly = (
        orders(spark, directory, files)
        .withColumn("at", f.timestamp_millis("created_at"))
        .withWatermark("at", "1 hour")
        .groupBy("user_id", f.window("at", "1 hour"))
        .agg(f.sum("amount").alias("total"))
    )
    out = tempfile.mkdtemp()
    return [
        start(high.writeStream.format("json").option("path", f"{out}/high")),
        start(counts.writeStream.format("noop").outputMode("update")),
        start(hourly.writeStream.format("noop").outputMode("update")),
    ]


WHAT: dict[str, Callable[[Any, str, int], list[Any]]] = {
    "count_and_sum": count_and_sum,
    "ctas": ctas,
    "three_branches": three_branches,
    "tumbling": tumbling,
    "hopping": hopping,
    "session": session_windows,
    "stream_join": stream_join,
    "table_join": table_join,
}


def start(writer: Any) -> Any:
    return writer.option("checkpointLocation", tempfile.mkdtemp()).trigger(availableNow=True).start()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=sorted(WHAT))
    parser.add_argument("directory")
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    spark = session(options.memory)
    spark.sparkContext.setLogLevel("ERROR")
    queries = WHAT[options.what](spark, options.directory, options.files)
    for query in queries:
        query.awaitTermination()
    found: list[Rates] = [rates_of(query.recentProgress) for query in queries]
    options.out.write_text(json.dumps([vars(rates) for rates in found]))


if __name__ == "__main__":
    main()

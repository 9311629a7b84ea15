"""What a user would write without Potok on Kafka: Structured Streaming with Spark's connector, and RocksDB state."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.handwritten import SCHEMA, session, start
from benchmarks.measure import rates_of
from potok.log.kafka.development.jars import connector_jars
from potok.settings import Settings


def count_and_sum(spark: Any, bootstrap: str, batch: int) -> Any:
    from pyspark.sql import functions as f

    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", batch)
        .load()
    )
    grouped = (
        records.select(f.from_json(f.col("value").cast("string"), SCHEMA).alias("order"))
        .select("order.*")
        .filter("amount > 20")
        .groupBy("user_id")
        .agg(f.count("*").alias("n"), f.sum("amount").alias("total"))
    )
    return start(grouped.writeStream.format("noop").outputMode("update"))


WHAT = {"count_and_sum": count_and_sum}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=sorted(WHAT))
    parser.add_argument("bootstrap")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    spark = session(options.memory, connector_jars(Settings.load().cache_path))
    spark.sparkContext.setLogLevel("ERROR")
    query = WHAT[options.what](spark, options.bootstrap, options.batch)
    query.awaitTermination()
    options.out.write_text(json.dumps([vars(rates_of(query.recentProgress))]))


if __name__ == "__main__":
    main()

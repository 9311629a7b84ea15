"""The same work as `handwritten`, as Potok topologies."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import potok
from benchmarks.measure import rates_of
from potok import StreamsBuilder, hours, tumbling


@dataclass
class Order:
    order_id: str
    user_id: str
    amount: float
    items: list[str]
    created_at: int


def typed(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value=Order).filter(lambda v: v["amount"] > 20)
    orders.group_by("user_id").aggregate(
        initializer={"n": 0, "total": 0.0},
        aggregator=lambda k, v, agg: {"n": agg["n"] + 1, "total": agg["total"] + v["amount"]},
        name="totals",
    )
    return builder


def dynamic(name: str) -> StreamsBuilder:
    """No types, and lambdas that cannot be traced: everything runs as Python."""
    builder = StreamsBuilder(name)
    orders = builder.stream("orders").filter(lambda v: v["amount"] > 20 and True)

    def add(k: Any, v: Any, agg: dict[str, Any]) -> dict[str, Any]:
        agg["n"] += 1
        agg["total"] += v["amount"]
        return agg

    orders.group_by(lambda k, v: str(v["user_id"])).aggregate(
        initializer=lambda: {"n": 0, "total": 0.0}, aggregator=add, name="totals"
    )
    return builder


def seeds(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value=Order)
    high = orders.filter(lambda k, v: v["amount"] > 100)
    high.map_values(lambda v: {**v, "status": "HIGH_VALUE"}).to("high-value-orders")
    by_user = orders.group_by(lambda k, v: v["user_id"])
    by_user.count(name="order_counts").to_stream().to("order-counts")
    by_user.windowed_by(tumbling(hours(1))).aggregate(
        initializer=0.0, aggregator=lambda k, v, total: total + v["amount"], name="hourly_totals"
    )
    return builder


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["typed", "dynamic", "seeds"])
    parser.add_argument("directory")
    parser.add_argument("--name", default="bench")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    builder = globals()[options.what](options.name)
    settings = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}
    query = potok.start(
        builder,
        broker=options.directory,
        until_end=True,
        max_batch_records=options.batch,
        target_batch_ms=3_600_000,
        driver_memory=options.memory,
        spark=settings,
    )
    query.wait()
    reports = query.spark_progress()
    options.out.write_text(json.dumps([vars(rates_of(reports, [records_in(report) for report in reports]))]))


def records_in(report: Any) -> int:
    """How many records a batch read, by the offsets that Spark kept for it."""
    source = report["sources"][0]
    return position(source["endOffset"]) - position(source["startOffset"])


def position(offset: Any) -> int:
    found = json.loads(offset) if isinstance(offset, str) else offset
    return sum(sum(parts.values()) for parts in (found or {"topics": {}})["topics"].values())


if __name__ == "__main__":
    main()

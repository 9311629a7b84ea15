"""The programs that Potok was asked for, as they were written down: the snippets on stateless and stateful steps, and
the Kafka Streams program carried over to Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from potok import StreamsBuilder, hours, tumbling
from potok.testing import TestDriver

pytestmark = pytest.mark.spark

TYPES: list[Any] = [None, "type string, amount double, items array<string>"]


@dataclass
class Order:
    order_id: str
    user_id: str
    amount: float
    items: list[str]


def test_the_kafka_streams_program(spark: Any) -> None:
    builder = StreamsBuilder("stream-processor")
    orders = builder.stream("orders", value=Order)

    (
        orders.filter(lambda k, v: v["amount"] > 100)
        .map_values(lambda v: {**v, "status": "HIGH_VALUE"})
        .to("high-value-orders")
    )

    by_user = orders.group_by(lambda k, v: v["user_id"])
    by_user.count(name="order_counts").to_stream().to("order-counts")
    by_user.windowed_by(tumbling(hours(1))).aggregate(
        initializer=0.0, aggregator=lambda k, v, total: total + v["amount"], name="hourly_totals"
    )

    with TestDriver(builder, partitions={"orders": 2}, spark=True) as driver:
        for number, (user, amount, minute) in enumerate([("ann", 120.0, 1), ("bob", 30.0, 2), ("ann", 50.0, 62)]):
            order = {"order_id": f"o{number}", "user_id": user, "amount": amount, "items": ["book"]}
            driver.send("orders", order, key=f"o{number}", timestamp=minute * 60_000, partition=0)
        driver.run()

        [high] = driver.read("high-value-orders")
        assert high.value == {
            "order_id": "o0",
            "user_id": "ann",
            "amount": 120.0,
            "items": ["book"],
            "status": "HIGH_VALUE",
        }
        assert high.key == "o0"
        assert {record.key: record.value for record in driver.read("order-counts")} == {"ann": 2, "bob": 1}
        assert driver.table("order_counts").get("ann") == 2
        hour = 3_600_000
        assert driver.table("hourly_totals").all() == {
            ("ann", 0, hour): 120.0,
            ("bob", 0, hour): 30.0,
            ("ann", hour, 2 * hour): 50.0,
        }
        assert driver.table("hourly_totals").get("ann", at=hour + 5) == 50.0


@pytest.mark.parametrize("value", TYPES, ids=["dynamic", "typed"])
def test_the_stateless_snippets(spark: Any, value: Any) -> None:
    builder = StreamsBuilder("stateless")
    stream = builder.stream("events", value=value)

    stream.filter(lambda k, v: v["amount"] > 100).to("filtered")
    stream.map(lambda k, v: (k, v["amount"] * 1.1)).to("mapped")
    stream.flatMap(lambda k, v: [(k, item) for item in v["items"]]).to("items")
    a, b = stream.branch(lambda k, v: v["type"] == "A", lambda k, v: v["type"] == "B")
    a.to("only-a")
    b.to("only-b")

    with TestDriver(builder, spark=True) as driver:
        driver.send("events", {"type": "A", "amount": 150.0, "items": ["x", "y"]}, key="k1")
        driver.send("events", {"type": "B", "amount": 10.0, "items": []}, key="k2")
        driver.send("events", {"type": "C", "amount": 1.0, "items": ["z"]}, key="k3")
        driver.run()

        assert [record.key for record in driver.read("filtered")] == ["k1"]
        assert [record.value for record in driver.read("mapped")] == [150.0 * 1.1, 10.0 * 1.1, 1.0 * 1.1]
        assert [(r.key, r.value) for r in driver.read("items")] == [("k1", "x"), ("k1", "y"), ("k3", "z")]
        assert [record.key for record in driver.read("only-a")] == ["k1"]
        assert [record.key for record in driver.read("only-b")] == ["k2"]
        assert driver.dead_letters() == []


@pytest.mark.parametrize("value", TYPES, ids=["dynamic", "typed"])
def test_the_stateful_snippets(spark: Any, value: Any) -> None:
    builder = StreamsBuilder("stateful")
    stream = builder.stream("events", value=value)

    totals = stream.groupByKey().aggregate(initializer=0, aggregator=lambda k, v, agg: agg + v["amount"])
    counts = stream.groupByKey().count()
    amounts = stream.mapValues(lambda v: v["amount"])
    sums = amounts.groupByKey().reduce(lambda v1, v2: v1 + v2)

    with TestDriver(builder, spark=True) as driver:
        for key, amount in [("ann", 5.0), ("bob", 7.0), ("ann", 2.5)]:
            driver.send("events", {"type": "A", "amount": amount, "items": []}, key=key)
        driver.run(batch_records=1)

        assert driver.table(totals.name).all() == {"ann": 7.5, "bob": 7.0}
        assert driver.table(counts.name).all() == {"ann": 2, "bob": 1}
        assert driver.table(sums.name).all() == {"ann": 7.5, "bob": 7.0}


@pytest.mark.parametrize("kind", ["stream", "table", "global_table"])
def test_the_join_snippet(spark: Any, kind: str) -> None:
    """`joiner=` as it is written there. What is elided is the value; two streams also say how far apart."""
    builder = StreamsBuilder("joining")
    stream1, stream2 = builder.stream("orders"), getattr(builder, kind)("payments")
    options: dict[str, Any] = {"stream": {"within": "1 h"}, "table": {}, "global_table": {"on": "id", "key": str}}[kind]

    stream1.join(stream2, joiner=lambda v1, v2: {**v1, **v2}, **options).to("paid")

    with TestDriver(builder, spark=True) as driver:
        driver.send("payments", {"paid": True}, key="o1", timestamp=1)
        driver.send("orders", {"id": "o1"}, key="o1", timestamp=2)
        driver.run()
        assert [record.value for record in driver.read("paid")] == [{"id": "o1", "paid": True}]

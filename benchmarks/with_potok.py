"""The same work as `handwritten`, as Potok topologies."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import potok
from benchmarks.measure import rates_between
from potok import StreamsBuilder, hopping, hours, session, tumbling
from potok.patterns import cep
from potok.topology.graph import Topology


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


def typed_out(name: str, guarantee: str = "exactly_once", topic: str = "") -> StreamsBuilder:
    """The typed topology, its changes written to a topic."""
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value=Order).filter(lambda v: v["amount"] > 20)
    totals = orders.group_by("user_id").aggregate(
        initializer={"n": 0, "total": 0.0},
        aggregator=lambda k, v, agg: {"n": agg["n"] + 1, "total": agg["total"] + v["amount"]},
        name="totals",
    )
    totals.to_stream().to(topic or f"totals-{name}", guarantee=guarantee)
    return builder


def typed_out_at_least_once(name: str) -> StreamsBuilder:
    return typed_out(name, "at_least_once")


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


def windowed(name: str, window: Any) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value=Order, timestamp="created_at")
    orders.group_by("user_id").windowed_by(window).aggregate(
        initializer={"n": 0, "total": 0.0},
        aggregator=lambda k, v, agg: {"n": agg["n"] + 1, "total": agg["total"] + v["amount"]},
        name="totals",
    )
    return builder


TIMES: dict[str, Any] = {"grace": "1 minute", "retention": "1 minute"}


def tumbling_windows(name: str) -> StreamsBuilder:
    return windowed(name, tumbling("10 minutes", **TIMES))


def hopping_windows(name: str) -> StreamsBuilder:
    return windowed(name, hopping("10 minutes", "1 minute", **TIMES))


def session_windows(name: str) -> StreamsBuilder:
    return windowed(name, session("1 minute", **TIMES))


@dataclass
class Payment:
    order_id: str
    paid: float
    paid_at: int


def stream_join(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value=Order, timestamp="created_at").select_key("order_id")
    payments = builder.stream("payments", value=Payment, timestamp="paid_at").select_key("order_id")
    joined = orders.join(
        payments,
        lambda o, p: {"user_id": o["user_id"], "amount": o["amount"], "paid": p["paid"]},
        within="5 minutes",
        grace="1 minute",
    )
    joined.foreach(look)
    return builder


def look(value: Any) -> None:
    """What the hand-written query does with its output: it looks at the fields of each row, and forgets them."""
    _ = value["user_id"], value["amount"]


@dataclass
class User:
    user_id: str
    name: str
    city: str


def table_join(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    users = builder.table("users", value=User)
    orders = builder.stream("orders", value=Order).select_key("user_id")
    joined = orders.join(users, lambda o, u: {"user_id": o["user_id"], "amount": o["amount"], "city": u["city"]})
    joined.foreach(look)
    return builder


def one_step(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    builder.stream("orders", value=Order).group_by("user_id").count(name="first")
    return builder


def three_steps(name: str) -> StreamsBuilder:
    """Three stateful steps, one after the other, on one key."""
    builder = StreamsBuilder(name)
    first = builder.stream("orders", value=Order).group_by("user_id").count(name="first")
    second = first.to_stream().group_by_key().max(name="second")
    second.to_stream().group_by_key().latest(name="third")
    return builder


def three_keys(name: str) -> StreamsBuilder:
    """Three stateful steps, one after the other, each on a key of its own."""
    builder = StreamsBuilder(name)
    first = builder.stream("orders", value=Order).group_by("user_id").count(name="first")
    second = first.to_stream().group_by(lambda k, v: v).count(name="second")
    second.to_stream().group_by(lambda k, v: v % 10).count(name="third")
    return builder


@dataclass
class CardPayment:
    payment_id: str
    user_id: str
    amount: int
    paid_at: int


def fraud(name: str) -> StreamsBuilder:
    """At least three small payments and then a big one."""
    builder = StreamsBuilder(name)
    payments = builder.stream("payments", value=CardPayment, timestamp="paid_at")
    pattern = cep.pattern(
        "small{3,} big", small=lambda e: e["amount"] < 10, big=lambda e: e["amount"] > 100, within="10 min"
    )
    found = payments.group_by("user_id").match(pattern, grace="5 s", name="fraud")
    found.map_values(
        lambda m: {"first_small": m["small"][0]["amount"], "smalls": len(m["small"]), "big": m["big"][0]["amount"]}
    ).to(f"alerts-{name}")
    return builder


def copy(name: str, guarantee: str) -> StreamsBuilder:
    """Every record as it is, into a topic of its own."""
    builder = StreamsBuilder(name)
    builder.stream("orders", value=Order).to(f"copies-{name}", guarantee=guarantee)
    return builder


CTAS = """
CREATE STREAM orders (order_id VARCHAR KEY, user_id VARCHAR, amount DOUBLE, items ARRAY<VARCHAR>, created_at VARCHAR)
    WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON');
CREATE TABLE order_counts WITH (KAFKA_TOPIC = '{topic}') AS
    SELECT user_id, COUNT(*) AS order_count, SUM(amount) AS total_amount FROM orders GROUP BY user_id EMIT CHANGES;
"""


def ctas(name: str) -> Topology:
    """The seeds' CREATE TABLE AS SELECT, which writes the changes of its table to a topic."""
    from potok.sql.catalog import Catalog
    from potok.sql.definitions import defined
    from potok.sql.planner.persist import lower_create
    from potok.sql.syntax import ast
    from potok.sql.syntax.parse import parse_script

    stream, table = parse_script(CTAS.format(topic=f"counts-{name}"))
    assert isinstance(stream.statement, ast.CreateSource)
    assert isinstance(table.statement, ast.CreateAs)
    catalog = Catalog().with_source(defined(stream.statement, Catalog(), stream.text))
    return lower_create(table.statement, catalog, name, table.text).topology


WHAT: dict[str, Callable[[str], StreamsBuilder | Topology]] = {
    "typed": typed,
    "dynamic": dynamic,
    "seeds": seeds,
    "typed_out": typed_out,
    "typed_out_at_least_once": typed_out_at_least_once,
    "tumbling": tumbling_windows,
    "hopping": hopping_windows,
    "session": session_windows,
    "stream_join": stream_join,
    "table_join": table_join,
    "ctas": ctas,
    "one_step": one_step,
    "three_steps": three_steps,
    "three_keys": three_keys,
    "fraud": fraud,
    "copy_exactly_once": partial(copy, guarantee="exactly_once"),
    "copy_at_least_once": partial(copy, guarantee="at_least_once"),
    "copy_at_most_once": partial(copy, guarantee="at_most_once"),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=sorted(WHAT))
    parser.add_argument("directory")
    parser.add_argument("--name", default="bench")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    builder = WHAT[options.what](options.name)
    query = potok.start(
        builder,
        broker=options.directory,
        until_end=True,
        max_batch_records=options.batch,
        target_batch_ms=3_600_000,
        driver_memory=options.memory,
    )
    ends: list[tuple[float, int]] = []
    query.group.on_batch(lambda _: ends.append((time.monotonic(), _position(query.offsets.topics))))
    query.wait()
    quarter = max(len(ends) // 4, 2)
    found = [rates_between(part) for part in (ends, ends[:quarter], ends[-quarter:])]
    options.out.write_text(json.dumps([vars(rates) for rates in found]))


def _position(topics: Mapping[str, Mapping[int, int]]) -> int:
    return sum(sum(parts.values()) for parts in topics.values())


if __name__ == "__main__":
    main()

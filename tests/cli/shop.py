"""A program of a shop, as a user would write it, and what its query leaves behind."""

from __future__ import annotations

from pathlib import Path

from potok.cli.queries.program import load_topology
from potok.log.open import open_broker
from potok.runtime.queries.prepare import prepare
from potok.settings import Settings
from potok.testing import TestDriver
from potok.topology.graph import Topology

HOUR = 3_600_000

PRICING = """
LIMIT = 100


def is_large(value):
    import math

    return math.floor(value["amount"]) > LIMIT
"""

ORDERS = (
    ("anna", 150.5, ["tea"]),
    ("bela", 20.0, []),
    ("anna", 30.0, ["tea", "cup"]),
    ("carl", 7.0, []),
    ("anna", 1.0, ["cup"]),
)
"""One every quarter of an hour, from 01:00 on."""

SHOP = """
from __future__ import annotations

from dataclasses import dataclass

from potok import StreamsBuilder, hours, tumbling
from pricing import is_large


@dataclass
class Order:
    user_id: str
    amount: float
    items: list[str]


FEES = {"high": 1.5}


def with_fee(value):
    return {**value, "fee": FEES["high"]}


builder = StreamsBuilder("shop")
orders = builder.stream("orders", value=Order)
orders.filter(is_large).map_values(with_fee).to("high-value-orders")

by_user = orders.group_by(lambda k, v: v["user_id"])
by_user.count(name="order_counts")
by_user.windowed_by(tumbling(hours(1))).sum("amount", name="hourly_totals")
orders.group_by(lambda k, v: len(v["items"]), name="by_size").count(name="sizes")

if __name__ == "__main__":
    raise SystemExit("a program that is loaded must not run")
"""


def write_program(directory: Path, text: str = SHOP, name: str = "shop.py") -> str:
    """The path of a program in a directory from which nothing can be imported."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "pricing.py").write_text(PRICING)
    (directory / name).write_text(text)
    return str(directory / name)


def fill(data: Path, program: str) -> None:
    """Run the query over a few orders, of which two cannot go on."""
    with TestDriver(load_topology(program), directory=data, partitions={"orders": 2}) as driver:
        for minute, (user, amount, items) in enumerate(ORDERS):
            order = {"user_id": user, "amount": amount, "items": items}
            driver.send("orders", order, key=user, timestamp=HOUR + minute * HOUR // 4, partition=0)
        driver.send("orders", b"\xff\x00not json", key="k", timestamp=5 * HOUR, partition=1)
        driver.send("orders", {"user_id": "late\x1b[31m", "amount": 1.0, "items": []}, timestamp=0, partition=0)
        driver.run()


def leave_a_run(data: Path, program: str) -> Topology:
    """What a query that was started and stopped leaves in its log; Spark has no part in that."""
    topology = load_topology(program)
    broker = open_broker(data)
    prepare(topology, broker, Settings()).release()
    broker.close()
    return topology

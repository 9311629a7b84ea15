"""The topology of the demo, written as a user would, and what the page shows of it."""

from __future__ import annotations

from typing import TypedDict

from potok.demo.shop import GRACE, ORDERS, WINDOW
from potok.dsl.builder import StreamsBuilder
from potok.duration import minutes
from potok.server.figures.panel import Panel
from potok.topology.nodes.windows import tumbling

QUERY = "shop-orders"


class Order(TypedDict):
    order_id: str
    user_id: str
    city: str
    amount: float
    items: list[str]


def build() -> StreamsBuilder:
    builder = StreamsBuilder(QUERY)
    orders = builder.stream(ORDERS, value=Order)

    large = orders.filter(lambda v: v["amount"] > 100)
    large.map_values(lambda v: {**v, "status": "HIGH_VALUE"}).to("high-value-orders")

    by_user = orders.group_by(lambda v: v["user_id"])
    by_user.count(name="order_counts").to_stream().to("order-counts")
    by_user.aggregate(initializer=0.0, aggregator=lambda v, total: total + v["amount"], name="user_totals")

    by_city = orders.group_by("city", name="orders.group_by_city")
    by_city.windowed_by(tumbling(WINDOW, grace=GRACE, retention=minutes(10))).sum("amount", name="city_sales")
    return builder


PANELS = (
    Panel("top", "user_totals", "Top users by money spent", unit="$", beside=("order_counts", "orders")),
    Panel("series", "city_sales", "Sales per 10 seconds, by city", unit="$", limit=30),
)

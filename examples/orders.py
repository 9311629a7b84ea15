"""The program of the README: high-value orders, orders per user, and totals per hour."""

from typing import TypedDict

import potok
from potok import StreamsBuilder, hours, tumbling


class Order(TypedDict):
    order_id: str
    user_id: str
    amount: float
    items: list[str]


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

if __name__ == "__main__":
    potok.run(builder)

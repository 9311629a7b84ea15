"""The program of a shop in Faust's style: what agents, tables and windows do with orders."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import potok.faust as faust


class Order(faust.Record):
    order_id: str
    user_id: str
    amount: float
    items: list  # type: ignore[type-arg]


class HourlyStats(faust.Record):
    user_id: str
    total: float
    count: int


def shop(**options: Any) -> faust.App:
    app = faust.App("order-processor", store="rocksdb://")
    orders_topic = app.topic("orders", value_type=Order)
    high_value_topic = app.topic("high-value-orders", value_type=Order)
    order_counts = app.Table("order_counts", default=int)
    user_totals = app.Table("user_totals", default=float)
    hourly_stats = app.Table("hourly_stats", default=lambda: HourlyStats(user_id="", total=0.0, count=0)).tumbling(
        timedelta(hours=1), expires=timedelta(hours=24)
    )

    @app.agent(orders_topic, **options)
    async def process_orders(orders: Any) -> None:
        async for order in orders:
            if order.amount > 100:
                await high_value_topic.send(value=order)
            order_counts[order.user_id] += 1
            user_totals[order.user_id] += order.amount

    @app.agent(orders_topic, **options)
    async def hourly_aggregation(orders: Any) -> None:
        async for order in orders:
            stats = hourly_stats[order.user_id]
            stats.user_id = order.user_id
            stats.total += order.amount
            stats.count += 1
            hourly_stats[order.user_id] = stats

    return app


HOUR = 3_600_000


def order(number: int, user: str, amount: Any) -> dict[str, Any]:
    return {"order_id": f"o{number}", "user_id": user, "amount": amount, "items": ["book"]}

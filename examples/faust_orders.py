"""A program written for Faust, with its import line changed: agents, tables, a table with windows, and a page.

python examples/faust_orders.py worker -l info
python examples/faust_orders.py send orders '{"order_id": "o1", "user_id": "u1", "amount": 120.5, "items": ["book"]}'
"""

from datetime import timedelta

import potok.faust as faust

app = faust.App("order-processor", broker="file:./data", store="rocksdb://")


class Order(faust.Record):
    order_id: str
    user_id: str
    amount: float
    items: list


orders_topic = app.topic("orders", value_type=Order)
high_value_topic = app.topic("high-value-orders", value_type=Order)

order_counts = app.Table("order_counts", default=int)
user_totals = app.Table("user_totals", default=float)


@app.agent(orders_topic)
async def process_orders(orders):
    async for order in orders:
        if order.amount > 100:
            await high_value_topic.send(value=order)

        order_counts[order.user_id] += 1
        user_totals[order.user_id] += order.amount

        print(f"order {order.order_id}: {order_counts[order.user_id]} orders of {order.user_id}")


class HourlyStats(faust.Record):
    user_id: str
    total: float
    count: int


hourly_stats = app.Table(
    "hourly_stats",
    default=lambda: HourlyStats(user_id="", total=0.0, count=0),
).tumbling(
    timedelta(hours=1),
    expires=timedelta(hours=24),
)


@app.agent(orders_topic)
async def hourly_aggregation(orders):
    async for order in orders:
        stats = hourly_stats[order.user_id]
        stats.user_id = order.user_id
        stats.total += order.amount
        stats.count += 1
        hourly_stats[order.user_id] = stats


@app.page("/stats/{user_id}/")
async def get_stats(web, request, user_id):
    return web.json(
        {
            "user_id": user_id,
            "order_count": order_counts.get(user_id, 0),
            "total_spent": user_totals.get(user_id, 0.0),
        }
    )


if __name__ == "__main__":
    app.main()

"""The program that both sides run: two agents, two tables, a table of windows and a page.

It is one file for both. In Faust `hourly_stats[key]` stands for all windows of a key, so the value of the one at hand
is asked for with `.value()`, which is spelled the same in Potok.
"""

import os
from datetime import timedelta

if os.environ["SIDE"] == "faust":
    import faust

    SPREAD = {}
else:
    import potok.faust as faust

    SPREAD = {"key": "user_id"} if os.environ["SIDE"] == "potok_spread" else {}

app = faust.App(
    os.environ["APP"],
    broker=os.environ["BROKER"],
    store="rocksdb://",
    # What makes Faust faster, or keeps it from waiting. Potok takes these options and has no use for them.
    datadir=os.environ["DATA"],
    topic_partitions=int(os.environ["PARTITIONS"]),
    topic_disable_leader=True,
    stream_wait_empty=False,
    stream_recovery_delay=0.0,
    broker_max_poll_records=5_000,
    producer_linger=0.05,
    producer_max_batch_size=1_000_000,
    producer_acks=1,
    web_enabled=False,
)


class Order(faust.Record):
    order_id: str
    user_id: str
    amount: float
    items: list


class HourlyStats(faust.Record):
    user_id: str
    total: float
    count: int


orders_topic = app.topic("orders", value_type=Order)
high_value_topic = app.topic(os.environ["OUT"], value_type=Order)

order_counts = app.Table("order_counts", default=int)
user_totals = app.Table("user_totals", default=float)
hourly_stats = app.Table(
    "hourly_stats",
    default=lambda: HourlyStats(user_id="", total=0.0, count=0),
    value_type=HourlyStats,
).tumbling(
    timedelta(hours=1),
    expires=timedelta(hours=24),
)


@app.agent(orders_topic, **SPREAD)
async def process_orders(orders):
    async for order in orders:
        if order.amount > 100:
            await high_value_topic.send(value=order)

        order_counts[order.user_id] += 1
        user_totals[order.user_id] += order.amount


@app.agent(orders_topic, **SPREAD)
async def hourly_aggregation(orders):
    async for order in orders:
        stats = hourly_stats[order.user_id].value()
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

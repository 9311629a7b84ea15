"""A program that type checkers accept, with the types that they must infer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import potok
from potok import Stream, StreamsBuilder, Table, faust, hours, minutes, run, tumbling
from potok.dsl.grouping.grouped_stream import GroupedStream, WindowedStream
from potok.dsl.grouping.grouped_table import GroupedTable
from potok.dsl.processed_stream import ProcessedStream
from potok.dsl.table import GlobalTable
from potok.faust.tables.windowed import WindowedTable
from potok.faust.types import RecordMetadata


@dataclass
class Order:
    order_id: str
    user_id: str
    amount: float
    items: list[str]

    def is_large(self) -> bool:
        return self.amount > 100


@dataclass
class User:
    name: str
    country: str


class Priced(TypedDict):
    price: float


builder = StreamsBuilder("typed")
orders = builder.stream("orders", value=Order)
assert_type(orders, Stream[str, Order])
assert_type(builder.stream("by-number", key=int, value=Order, value_format="json"), Stream[int, Order])
assert_type(builder.stream("ddl", value="amount double"), Stream[str, Any])
assert_type(builder.stream("dynamic"), Stream[str, Any])
assert_type(builder.stream("ddl-key", key="bigint", value=Order), Stream[Any, Any])
assert_type(builder.stream("texts", value=str), Stream[str, str])
assert_type(builder.stream("prices", value=Priced), Stream[str, Priced])
assert_type(builder.stream("lists", value=list[int]), Stream[str, list[int]])

# One record at a time.
assert_type(orders.filter(lambda v: v.amount > 100), Stream[str, Order])
assert_type(orders.filter(lambda k, v: v.is_large() and k.startswith("a")), Stream[str, Order])
assert_type(orders.filter_not(lambda v: v.is_large()), Stream[str, Order])
assert_type(orders.map_values(lambda v: v.amount), Stream[str, float])
assert_type(orders.map_values(lambda k, v: (k, v.amount)), Stream[str, tuple[str, float]])
assert_type(orders.map_values(lambda v: {"price": v.amount}, value=Priced), Stream[str, Priced])
assert_type(orders.map_values(lambda k, v: {"price": v.amount}, value=Priced), Stream[str, Priced])
assert_type(orders.map_values(lambda v: {"price": v.amount}, value="price double"), Stream[str, Any])
assert_type(orders.map_batches(lambda t: t["amount"], value=float), Stream[str, float])
assert_type(orders.map_batches(lambda df, model: model(df), setup=dict, format="polars"), Stream[str, Any])
assert_type(orders.map(lambda k, v: (len(k), v.amount)), Stream[int, float])
assert_type(orders.map(lambda v: (v.user_id, v)), Stream[str, Order])
assert_type(orders.flat_map(lambda k, v: [(k, item) for item in v.items]), Stream[str, str])
assert_type(orders.flat_map_values(lambda v: v.items), Stream[str, str])
assert_type(orders.select_key(lambda v: len(v.user_id)), Stream[int, Order])
assert_type(orders.select_key("user_id"), Stream[Any, Order])
assert_type(orders.select_key("user_id", key=str), Stream[str, Order])
assert_type(orders.peek(lambda v: print(v.amount)), Stream[str, Order])
large, small = orders.branch(lambda v: v.amount > 100, lambda v: v.amount <= 100)
assert_type(large.merge(small), Stream[str, Order])
assert_type(orders.split(large=lambda v: v.is_large())["large"], Stream[str, Order])
orders.foreach(lambda k, v: print(k, v.amount))
orders.through("copy", guarantee="at_least_once").to("out", cleanup_policy="compact")

# Aggregates.
by_user = orders.group_by(lambda v: v.user_id)
assert_type(by_user, GroupedStream[str, Order])
assert_type(orders.group_by_key(), GroupedStream[str, Order])
assert_type(by_user.count(name="counts"), Table[str, int])
assert_type(by_user.sum(lambda v: v.amount, name="sums"), Table[str, float])
assert_type(by_user.max("amount", name="largest"), Table[str, Any])
assert_type(by_user.latest(name="latest"), Table[str, Order])
assert_type(by_user.collect_list(lambda v: v.order_id, name="ids"), Table[str, list[str]])
assert_type(by_user.reduce(lambda a, b: a if a.is_large() else b, name="reduced"), Table[str, Order])
assert_type(by_user.aggregate(0.0, lambda v, total: total + v.amount, name="totals"), Table[str, float])
assert_type(by_user.aggregate(float, lambda k, v, total: total + v.amount, name="totals-2"), Table[str, float])
windowed = by_user.windowed_by(tumbling(hours(1)))
assert_type(windowed, WindowedStream[str, Order])
assert_type(windowed.emit_final().count(name="hourly"), Table[Any, int])

# Tables.
users = builder.table("users", value=User)
counts = by_user.count(name="more-counts", emit="each_record")
assert_type(users, Table[str, User])
assert_type(counts.filter(lambda n: n > 1), Table[str, int])
assert_type(counts.map_values(lambda n: str(n)), Table[str, str])
assert_type(counts.to_stream(), Stream[str, int])
assert_type(counts.to_stream(changes=True), Stream[str, Any])
assert_type(orders.to_table(name="orders-table"), Table[str, Order])
per_country = users.group_by(lambda v: v.country)
assert_type(per_country, GroupedTable[str, User])
assert_type(per_country.count(name="per-country"), Table[str, int])

# Joins.
products = builder.global_table("products", value=Priced)
assert_type(products, GlobalTable[str, Priced])
assert_type(orders.join(users, lambda order, user: user.name + order.user_id), Stream[str, str])
assert_type(orders.join(users, lambda k, order, user: (k, user.country)), Stream[str, tuple[str, str]])
assert_type(orders.join(products, "order_id", lambda order, p: order.amount * p["price"]), Stream[str, float])
assert_type(orders.left_join(users, lambda order, user: user.name if user else "", name="l"), Stream[str, str])
assert_type(orders.join(orders, lambda a, b: a.amount + b.amount, within=minutes(5), name="s"), Stream[str, float])
assert_type(users.join(counts, lambda user, n: user.name * n), Table[str, str])
assert_type(users.left_join(counts, lambda user, n: n or 0, name="left"), Table[str, int])
assert_type(users.outer_join(counts, lambda user, n: user is None, name="outer"), Table[str, bool])


# Processors.
def twice(key: str, value: Order, ctx: potok.ProcessorContext) -> None:
    ctx.forward(value.amount * 2)


assert_type(orders.process(twice, value=float, name="twice"), ProcessedStream[str, float])
assert_type(orders.ordered("10 seconds", name="in-order"), Stream[str, Order])

# The spellings of Kafka Streams.
assert_type(orders.mapValues(lambda v: v.amount), Stream[str, float])
assert_type(orders.filterNot(lambda v: v.is_large()).groupByKey().count(name="c").toStream(), Stream[str, int])
orders.flatMapValues(lambda v: v.items).selectKey(lambda v: v).groupBy(lambda v: v).windowedBy(tumbling(hours(1)))
orders.flatMap(lambda v: [(v.user_id, v)]).toTable(name="t").leftJoin(users, lambda order, user: user, name="lj")
users.outerJoin(counts, lambda user, n: n, name="oj").groupBy(lambda n: n).countDistinct(name="cd")
orders.groupByKey().collectList(name="cl")
orders.processValues(twice, name="pv").forEach(print)
builder.globalTable("more-products", value=Priced)

run(builder)

app = faust.App("typed-faust", stream_buffer_maxsize=5)
assert_type(app.conf.id, str)
assert_type(app.conf.stream_buffer_maxsize, int | None)
app.conf.topic_partitions = 3
app.conf.broker = "kafka://localhost:9092"
scores = app.Table("scores", default=int)
scores["ada"] += 1
assert_type(scores, faust.Table)
assert_type(app.SetTable("names", value_type=str), faust.SetTable)
assert_type(scores.tumbling(3600).name, str)
assert_type(app.Table("hourly", default=int, window=faust.TumblingWindow(3600)), WindowedTable)


@app.timer(1.0)
async def poll() -> None: ...


@app.task(traced=False)
def once(number: int = 0) -> str:
    return str(number)


assert_type(once(1), str)


@app.service
class Feed(faust.Service):
    @faust.Service.task
    async def read(self) -> int:
        return 1


async def forwarded(event: faust.Event) -> None:
    assert_type(await event.forward("out"), RecordMetadata)
    assert_type(await Feed().read(), int)

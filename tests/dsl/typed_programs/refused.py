"""Mistakes that type checkers report, each on a line that ends in `# error`."""

from __future__ import annotations

from dataclasses import dataclass

import potok
from potok import StreamsBuilder, Table, faust, hours, minutes, tumbling


@dataclass
class Order:
    user_id: str
    amount: float


builder = StreamsBuilder("mistakes")
orders = builder.stream("orders", value=Order)
users = builder.table("users", value=Order)
by_user = orders.group_by_key()

# A typo in a field.
orders.filter(lambda v: v.amuont > 100)  # error
orders.filter(lambda k, v: v.amuont > 100)  # error
orders.map_values(lambda v: v.amuont)  # error
orders.map_values(lambda k, v: v.amuont)  # error
orders.map_values(lambda v: v.amuont, value=float)  # error
orders.map(lambda k, v: (k, v.amuont))  # error
orders.select_key(lambda v: v.usre_id)  # error
orders.group_by(lambda v: v.usre_id)  # error
orders.split(large=lambda v: v.amuont > 100)  # error
orders.branch(lambda v: v.amuont > 100, lambda v: v.amount < 1)  # error
by_user.sum(lambda v: v.amuont)  # error
by_user.aggregate(0.0, lambda v, total: total + v.amuont)  # error
orders.join(users, lambda order, user: user.nmae)  # error
users.join(users, lambda a, b: a.amount + b.amuont)  # error
orders.filter(lambda v: v.amount > 1).map_values(lambda v: v.amount).filter(lambda v: v.amount)  # error

# A wrong method.
orders.fliter(lambda v: True)  # error
orders.mapvalues(lambda v: v)  # error
orders.count()  # error
users.to("out")  # error
by_user.windowed(tumbling(hours(1)))  # error
builder.steam("orders")  # error
potok.StreamBuilder("q")  # error

# Something that cannot be joined.
orders.join("users", lambda order, user: order)  # error
orders.join(by_user, lambda order, user: order)  # error
orders.outer_join(users, lambda order, user: order, within=minutes(5))  # error
users.join(orders, lambda user, order: user)  # error
orders.merge(users)  # error

# A result that is used as something else.
counts: Table[str, str] = by_user.count(name="counts")  # error
orders.left_join(users, lambda order, user: user.amount)  # error

# A value outside a closed set.
by_user.count(name="c", emit="sometimes")  # error
orders.to("out", guarantee="twice")  # error
orders.to("out", cleanup_policy="shred")  # error
orders.to_table(name="t", ttl="1 day", ttl_clock="wall")  # error
orders.to_files("lake", format="csv")  # error
builder.describe("svg")  # error
builder.stream("orders", value=Order, vlaue_format="json")  # error

# A Faust-style program.
app = faust.App("mistakes")
counts_by_user = app.Table("counts", default=int)
hourly = app.Table("hourly", default=int, window=faust.TumblingWindow(3600))
print(app.conf.nonsense)  # error
app.conf.stream_buffer_maxsise = 5  # error
app.conf.stream_buffer_maxsize = "many"  # error
app.conf.topic_partitions + "1"  # error
print(app.nonsense)  # error
app.tabel("counts")  # error
counts_by_user.tumblin(3600)  # error
counts_by_user.relative_to_now()  # error
hourly.relative_to_noww()  # error
app.topic("orders").sned(value=1)  # error


@app.timer(1.0)
def poll(number: int) -> None: ...


@app.task
async def once() -> None: ...


poll("one")  # error
once(1)  # error


async def forward(event: faust.Event) -> None:
    print((await event.forward("out")).ofset)  # error
    print(event.vlaue)  # error

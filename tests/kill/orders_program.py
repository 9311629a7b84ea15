"""A program that gets killed: counts, window totals and a filtered stream, over the records of `write_orders`."""

from __future__ import annotations

import json
import sys

import potok
from potok import StreamsBuilder, minutes, tumbling


def build() -> StreamsBuilder:
    builder = StreamsBuilder("orders-query")
    orders = builder.stream("orders", value="user string, amount bigint")
    orders.filter(lambda v: v["amount"] >= 50).to("large")
    by_user = orders.group_by("user")
    by_user.count(name="counts").to_stream().to("counts")
    by_user.windowed_by(tumbling(minutes(1), grace=minutes(1), retention=minutes(10))).sum("amount", name="totals")
    by_user.aggregate(
        initializer=list, aggregator=lambda k, v, seen: sorted({*seen, v["amount"] % 7}), name="remainders"
    )
    return builder


def record(number: int) -> tuple[bytes, bytes, int]:
    """Key, value and timestamp of one order; some do not decode, some are late."""
    user = f"user-{number * number % 23}"
    value = json.dumps({"user": user, "amount": number % 100}).encode()
    if number % 41 == 0:
        value = b"{not json"
    late = 600_000 if number % 37 == 0 and number > 500 else 0
    return user.encode(), value, number * 1_000 - late


if __name__ == "__main__":
    potok.run(build(), broker=sys.argv[1], until_end=True, max_batch_records=int(sys.argv[2]), shards=2)

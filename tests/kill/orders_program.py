"""A program that gets killed: counts, window totals and a filtered stream, over the records of `write_orders`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import potok
from potok import StreamsBuilder, minutes, tumbling


def build(prefix: str = "", watch: Callable[[Any], None] | None = None) -> StreamsBuilder:
    """`watch` is called with each order, in the tasks; nothing depends on it."""
    builder = StreamsBuilder(f"{prefix}orders-query")
    orders = builder.stream(f"{prefix}orders", value="user string, amount bigint")
    if watch is not None:
        orders.foreach(watch, name="watch")
    orders.filter(lambda v: v["amount"] >= 50).to(f"{prefix}large")
    by_user = orders.group_by("user")
    by_user.count(name="counts").to_stream().to(f"{prefix}counts")
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
    return user.encode(), value, 1_000_000 + number * 1_000 - late


if __name__ == "__main__":
    program = build(sys.argv[3] if len(sys.argv) > 3 else "")
    potok.run(program, broker=sys.argv[1], until_end=True, max_batch_records=int(sys.argv[2]), shards=2)

"""What the program must come to, computed in plain Python, and what the two sides came to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import orjson
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

from benchmarks import kafka, orders
from benchmarks.faust_worker import Place
from potok.dead_letters.read import dead_letter_topic
from potok.snapshots.tables import Tables
from potok.testing.outputs import read_dead_letters

USERS = 10_000
HOUR_MS = 3_600_000
LARGE = 100
BLOCK = 10_000


@dataclass
class Truth:
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    totals: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    hours: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    large: list[str] = field(default_factory=list)


def batches(first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Orders number `first` to `last`, the same ones however they are cut: they are drawn by whole chunks."""
    chunks = -(-last // orders.CHUNK)
    for number, batch in enumerate(orders.batches(chunks * orders.CHUNK, USERS)):
        begin = number * orders.CHUNK
        part = batch.slice(max(0, first - begin), max(0, last - max(first, begin)))
        if len(part):
            yield part


@lru_cache(maxsize=2)
def truth(records: int) -> Truth:
    """Orders of a user are in one partition, so that their sum has one order too, and is exact."""
    found = Truth()
    for batch in batches(0, records):
        for text, at_ms in zip(batch["value"].to_pylist(), batch["timestamp"].to_pylist(), strict=True):
            order = orjson.loads(text)
            user, amount = order["user_id"], order["amount"]
            found.counts[user] += 1
            found.totals[user] += amount
            found.hours[user, at_ms - at_ms % HOUR_MS] += 1
            if amount > LARGE:
                found.large.append(order["order_id"])
    found.large.sort()
    return found


def check(where: Place, records: int, broken: int = 0) -> None:
    """Whether Potok's tables, its output and its dead letters are what they must be, each row and each record."""
    wanted, broker = truth(records), where.broker()
    tables = Tables(broker, where.name)
    sent = sorted(orjson.loads(value or b"")["order_id"] for _, value in plain(where, where.out))
    hours = {(row.key, row.start_ms): value["count"] for row, value in tables["hourly_stats"].all().items()}
    for name, found, right in (
        ("order_counts", tables["order_counts"].all(), wanted.counts),
        ("user_totals", tables["user_totals"].all(), wanted.totals),
        ("hourly_stats", hours, wanted.hours),
        (where.out, sent, wanted.large),
    ):
        if found != right:
            raise RuntimeError(f"{name} of {where.side} is wrong")
    letters = read_dead_letters(broker, dead_letter_topic(where.name)) if broken else []
    if [letter.reason for letter in letters] != ["decode"] * broken:
        raise RuntimeError(f"{broken} records are broken, and {len(letters)} were set aside")


def counted_by_faust(where: Place) -> dict[str, int]:
    """The rows of its table, by the last record of each key in the topic from which it would recover them."""
    return {
        orjson.loads(key): orjson.loads(value)
        for key, value in plain(where, where.changelog("order_counts"))
        if key is not None and value is not None
    }


def plain(where: Place, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Keys and values as a program reads them that knows nothing of either side."""
    consumer = listener(where)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(kafka.PARTITIONS)])
    ended: set[int | None] = set()
    while len(ended) < kafka.PARTITIONS:
        for message in consumer.consume(BLOCK, 1.0):
            if message.error():
                ended.add(message.partition())
            else:
                yield message.key(), message.value()
    consumer.close()


def listener(where: Place) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": where.bootstrap,
            "group.id": f"reader-{where.name}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )

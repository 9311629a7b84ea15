"""What plain Python says of the records of `orders_program`, and the comparison with what a query made of them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from potok.log.broker import Broker
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.tables import Tables
from potok.testing.outputs import read_dead_letters, read_outputs


class Answer:
    """What the tables and topics must hold after so many records of each partition."""

    def __init__(self, broker: Broker, offsets: dict[int, int], topic: str = "orders") -> None:
        self.counts: Counter[str] = Counter()
        self.totals: dict[tuple[str, int], int] = defaultdict(int)
        self.remainders: dict[str, set[int]] = defaultdict(set)
        self.large: Counter[bytes] = Counter()
        self.dead: Counter[tuple[int, int, str]] = Counter()
        for partition, end in offsets.items():
            self._partition(broker, topic, partition, end)

    def _partition(self, broker: Broker, topic: str, partition: int, end: int) -> None:
        stream_time = -1
        rows = [row for batch in broker.read(topic, partition, 0, end) for row in batch.to_pylist()]
        for row in rows:
            try:
                order = json.loads(row["value"])
            except ValueError:
                self.dead[partition, row["offset"], "decode"] += 1
                continue
            stream_time = max(stream_time, row["timestamp"])
            user, amount = order["user"], order["amount"]
            self.counts[user] += 1
            self.remainders[user].add(amount % 7)
            if amount >= 50:
                self.large[row["value"]] += 1
            start = row["timestamp"] // 60_000 * 60_000
            if start + 120_000 <= stream_time:
                self.dead[partition, row["offset"], "late"] += 1
            else:
                self.totals[user, start] += amount


def check(broker: Broker, prefix: str = "", answer: Answer | None = None) -> None:
    """Everything visible is exactly what the committed offsets stand for: nothing twice, nothing lost, nothing torn.

    An answer from outside is compared as it is, whatever the query says that it has read.
    """
    query = f"{prefix}orders-query"
    entry = read_entry(broker, query)
    assert entry is not None
    if answer is None:
        answer = Answer(broker, entry.offsets.topics.get(f"{prefix}orders", {}), f"{prefix}orders")
    tables = Tables(broker, query).snapshot()
    same("table counts", tables["counts"], answer.counts)
    same("table remainders", {user: set(seen) for user, seen in tables["remainders"].items()}, answer.remainders)
    kept = {(key.key, key.start_ms): total for key, total in tables["totals"].items()}
    watermark = entry.watermarks.get("totals", 0)
    gone = {place for place in answer.totals.keys() - kept.keys() if place[1] + 60_000 + 600_000 <= watermark}
    same("table totals", kept, {place: total for place, total in answer.totals.items() if place not in gone})
    large = Counter(record.raw_value for record in read_outputs(broker, f"{prefix}large"))
    same("topic large", large, answer.large)
    letters = read_dead_letters(broker, f"{query}-dead-letters")
    dead = Counter((letter.partition, letter.offset, letter.reason) for letter in letters)
    same("dead letters", dead, answer.dead)
    last: dict[str, Any] = {record.key: record.value for record in read_outputs(broker, f"{prefix}counts")}
    same("topic counts", last, answer.counts)


def same(what: str, found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> None:
    """Raise with the first differences, if there are any."""
    if found == expected:
        return
    keys = sorted(found.keys() | expected.keys(), key=repr)
    wrong = [key for key in keys if found.get(key) != expected.get(key)]
    rendered = [f"{key!r} is {found.get(key)!r} and should be {expected.get(key)!r}" for key in wrong[:5]]
    raise AssertionError(f"{what}: {len(wrong)} of {len(keys)} differ: {'; '.join(rendered)}")

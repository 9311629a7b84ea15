"""A program with patterns that gets killed, and what naive backtracking says of its records."""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from typing import Any

from potok import StreamsBuilder
from potok.log.broker import Broker
from potok.operators.patterns import open_runs
from potok.patterns import cep
from potok.testing.outputs import read_outputs
from potok.topology.nodes import Match
from tests.kill import without_spark
from tests.kill.answer import same
from tests.oracle.patterns import Result, match_all

RECORDS = 3_000
FAR_MS = 1_000_000_000


def build(prefix: str = "") -> StreamsBuilder:
    small = cep.event("small", lambda e: e["amount"] < 40)
    big = cep.event("big", lambda e, m: e["amount"] > 2 * m["small"].last["amount"])
    pattern = small.times_or_more(2).consecutive().greedy().followed_by(big).within("2 min")
    builder = StreamsBuilder(f"{prefix}patterns-query")
    payments = builder.stream(f"{prefix}payments", value="amount bigint").group_by_key()
    found = payments.match(pattern, after="skip_past_last", grace="5 s", name="fraud")
    found.to(f"{prefix}alerts")
    found.timeouts.to(f"{prefix}almost")
    return builder


def record(number: int) -> tuple[bytes, bytes, int]:
    """Key, value and timestamp of a payment, up to 3 s behind others; the last ones are far in the future."""
    key = f"user-{number * number % 23}" if number < RECORDS - 20 else f"end-{number}"
    time_ms = 1_000_000 + number * 1_000 - number % 4 * 1_000
    amount = number * 7919 % 100 if number < RECORDS - 20 else 1_000
    return key.encode(), json.dumps({"amount": amount}).encode(), time_ms if number < RECORDS - 20 else FAR_MS


def check(broker: Broker) -> None:
    """Compare both topics with what must come of all records."""
    node = next(node for node in build().build() if isinstance(node, Match))
    rows: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    for number in range(RECORDS - 20):
        key, value, time_ms = record(number)
        rows[key.decode()].append((time_ms, json.loads(value)))
    expected: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for key, unordered in rows.items():
        ordered = sorted(unordered, key=lambda row: row[0])
        for counter, results in zip(expected, match_all(node.pattern, node.after, ordered), strict=True):
            counter.update(_rendered(key, result, node, ordered) for result in results)
    for topic, counter in zip(("alerts", "almost"), expected, strict=True):
        assert counter, f"nothing is expected in {topic}"
        found = Counter(
            json.dumps([record.key, record.timestamp_ms, record.value], sort_keys=True)
            for record in read_outputs(broker, topic)
        )
        same(f"topic {topic}", found, counter)


def _rendered(key: str, result: Result, node: Match, rows: list[tuple[int, Any]]) -> str:
    value: dict[str, list[Any]] = {name: [] for name in node.variables}
    for name, index in result.taken:
        value[name].append(rows[index][1])
    return json.dumps([key, result.time, value], sort_keys=True)


if __name__ == "__main__":
    open_runs.SIZE, open_runs.FEW = 2, 0
    without_spark.main(sys.argv[1], int(sys.argv[2]), "", build)

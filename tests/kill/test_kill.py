"""Kill the process at every durable step, start it again, and compare with what plain Python says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import potok
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.testing.outputs import read_dead_letters, read_outputs
from potok.views.ledger_view import read_entry
from tests.kill import orders_program

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(600)]

PARTITIONS = 2
RECORDS = 3_000
BATCH = 250

# Each kill happens in a start of its own, which first has to recover from the kill before it; the numbers let some
# batches pass. The state is written by Spark's workers: one that is killed each time it tries makes Spark give up.
FAILPOINTS = [
    "epoch.begun",
    "state.before",
    "state.written",
    "ledger.before:2",
    "log.publish.before:3",
    "log.publish.written:2",
    "log.publish.synced:2",
    "log.publish.committed:2",
    "ledger.committed",
    "commit_log.before:2",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("kill")
    broker = EmbeddedBroker.shared(directory)
    broker.create_topic("orders", PARTITIONS)
    records = [LogRecord(*orders_program.record(number)) for number in range(RECORDS)]
    broker.append("orders", records)
    return directory


def run(data: Path, failpoint: str = "") -> int:
    environment = {**os.environ, "POTOK_FAILPOINT": failpoint}
    root = Path(__file__).parents[2]
    finished = subprocess.run(
        [sys.executable, "-m", "tests.kill.orders_program", f"file:{data}", str(BATCH)],
        cwd=root,
        env=environment,
        timeout=180,
        capture_output=True,
        check=False,
    )
    return finished.returncode


class Answer:
    """What the tables and topics must hold after so many records of each partition."""

    def __init__(self, broker: EmbeddedBroker, offsets: dict[int, int]) -> None:
        self.counts: Counter[str] = Counter()
        self.totals: dict[tuple[str, int], int] = defaultdict(int)
        self.remainders: dict[str, set[int]] = defaultdict(set)
        self.large: Counter[bytes] = Counter()
        self.dead: Counter[tuple[int, int, str]] = Counter()
        for partition, end in offsets.items():
            self._partition(broker, partition, end)

    def _partition(self, broker: EmbeddedBroker, partition: int, end: int) -> None:
        stream_time = -1
        rows = [row for batch in broker.read("orders", partition, 0, end) for row in batch.to_pylist()]
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


def check(data: Path) -> None:
    """Everything visible is exactly what the committed offsets stand for: nothing twice, nothing lost, nothing torn."""
    broker = EmbeddedBroker.shared(data)
    entry = read_entry(broker, "orders-query")
    assert entry is not None
    offsets = entry.offsets.topics.get("orders", {})
    answer = Answer(broker, offsets)
    tables = potok.open_tables(data, "orders-query").snapshot()
    assert tables["counts"] == answer.counts
    assert {user: set(seen) for user, seen in tables["remainders"].items()} == answer.remainders
    kept = {(key.key, key.start_ms): total for key, total in tables["totals"].items()}
    assert kept == {place: total for place, total in answer.totals.items() if place in kept}
    clock = entry.clocks.get("totals", 0)
    missing = answer.totals.keys() - kept.keys()
    assert all(start + 60_000 + 600_000 <= clock for _, start in missing), missing
    assert Counter(record.raw_value for record in read_outputs(broker, "large")) == answer.large
    letters = read_dead_letters(broker, "orders-query-dead-letters")
    assert Counter((letter.partition, letter.offset, letter.reason) for letter in letters) == answer.dead
    last: dict[str, Any] = {record.key: record.value for record in read_outputs(broker, "counts")}
    assert last == answer.counts


def test_a_query_killed_at_every_durable_step_ends_with_the_right_answer(data: Path) -> None:
    progressed = []
    for failpoint in FAILPOINTS:
        code = run(data, failpoint)
        assert code != 0, f"{failpoint} was never reached"
        check(data)
        entry = read_entry(EmbeddedBroker.shared(data), "orders-query")
        progressed.append(0 if entry is None else sum(entry.offsets.topics.get("orders", {}).values()))

    assert progressed[-1] < RECORDS, "the kills came too late to prove anything"
    abandoned = data / "queries" / "orders-query" / "staging" / "1-1" / "left-by-a-killed-process"
    abandoned.parent.mkdir(parents=True, exist_ok=True)
    abandoned.write_bytes(b"output that was never published")
    assert run(data, "state.written:4") == 0, "Spark tries a task again whose worker died"
    assert not abandoned.exists()
    check(data)
    entry = read_entry(EmbeddedBroker.shared(data), "orders-query")
    assert entry is not None
    assert sum(entry.offsets.topics["orders"].values()) == RECORDS

    missing: Any = Answer(EmbeddedBroker.shared(data), entry.offsets.topics["orders"]).totals
    kept = {(key.key, key.start_ms) for key in potok.open_tables(data, "orders-query")["totals"].all()}
    closing = entry.clocks["totals"]
    assert kept == {place for place in missing if place[1] + 660_000 > closing}

"""Kill the process at every durable step, start it again, and compare with what plain Python says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import potok
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.snapshots.ledger_view import read_entry
from tests.kill import events_program, orders_program, patterns_program, sagas_program
from tests.kill.answer import Answer, check

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(600)]

PARTITIONS = 2
RECORDS = 3_000
BATCH = 250

# Each kill happens in a start of its own, which first has to recover from the kill before it; the numbers let some
# batches pass.
DURABLE = [
    "epoch.before",
    "epoch.started",
    "state.before",
    "state.written",
    "state.written:5",
    "ledger.before:2",
    "log.publish.before",
    "log.publish.written:2",
    "log.publish.synced:2",
    "log.publish.committed:2",
    "ledger.committed",
    "epoch.started",
]
"""Every step that makes something durable; `make faults` has a row for each of them with Spark."""

FAILPOINTS = ["state.written", "ledger.before:2", "log.publish.synced:3", "ledger.committed:2", "batch.done:2"]
"""What Spark has a part in: the state is written by its workers, and one that is killed each time it tries makes Spark
give up; a batch that was started, and one that was committed, is in its checkpoint when it starts again."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = tmp_path / "kill"
    broker = EmbeddedBroker.shared(directory)
    broker.create_topic("orders", PARTITIONS)
    records = [LogRecord(*orders_program.record(number)) for number in range(RECORDS)]
    broker.append("orders", records)
    return directory


def run(url: str, failpoint: str = "", prefix: str = "", program: str = "orders_program") -> int:
    environment = {**os.environ, "POTOK_FAILPOINT": failpoint}
    root = Path(__file__).parents[2]
    finished = subprocess.run(
        [sys.executable, "-m", f"tests.kill.{program}", url, str(BATCH), prefix],
        cwd=root,
        env=environment,
        timeout=180,
        capture_output=True,
        check=False,
    )
    return finished.returncode


def test_a_query_killed_at_every_durable_step_ends_with_the_right_answer(data: Path) -> None:
    broker = EmbeddedBroker.shared(data)
    progressed = []
    for failpoint in DURABLE:
        assert run(f"file:{data}", failpoint, program="without_spark") == -signal.SIGKILL, failpoint
        entry = read_entry(broker, "orders-query")
        if entry is not None:
            check(broker)
            progressed.append(sum(entry.offsets.topics.get("orders", {}).values()))
    assert progressed == sorted(progressed)
    assert 0 < progressed[-1] < RECORDS, "the kills proved nothing"
    assert run(f"file:{data}", program="without_spark") == 0
    check(broker)
    entry = read_entry(broker, "orders-query")
    assert entry is not None
    assert sum(entry.offsets.topics["orders"].values()) == RECORDS


def test_open_matches_of_a_pattern_survive_a_kill_at_every_durable_step(tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path / "kill")
    broker.create_topic("payments", PARTITIONS)
    broker.append("payments", [LogRecord(*patterns_program.record(number)) for number in range(RECORDS)])
    url = f"file:{tmp_path / 'kill'}"
    for failpoint in DURABLE:
        assert run(url, failpoint, program="patterns_program") == -signal.SIGKILL, failpoint
    entry = read_entry(broker, "patterns-query")
    assert entry is not None
    assert 0 < sum(entry.offsets.topics["payments"].values()) < RECORDS, "the kills proved nothing"
    assert run(url, program="patterns_program") == 0
    patterns_program.check(broker)


def test_sagas_send_each_command_once_after_a_kill_at_every_durable_step(tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path / "kill")
    for topic, records in sagas_program.records().items():
        broker.create_topic(topic, PARTITIONS)
        broker.append(topic, records)
    url = f"file:{tmp_path / 'kill'}"
    for failpoint in DURABLE:
        assert run(url, failpoint, program="sagas_program") == -signal.SIGKILL, failpoint
    entry = read_entry(broker, "sagas-query")
    assert entry is not None
    assert 0 < sum(entry.offsets.topics["events"].values()) < sagas_program.EVENTS, "the kills proved nothing"
    assert run(url, program="sagas_program") == 0
    sagas_program.check(broker)


def test_events_keep_their_ids_and_are_folded_once_after_kills(tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path / "kill")
    for topic, records in events_program.records().items():
        broker.create_topic(topic, PARTITIONS)
        broker.append(topic, records)
    url = f"file:{tmp_path / 'kill'}"
    for failpoint in ("state.written:5", "ledger.before:2", "log.publish.written", "log.publish.synced:2"):
        assert run(url, failpoint, program="events_program") == -signal.SIGKILL, failpoint
    entry = read_entry(broker, events_program.QUERY)
    assert entry is not None
    assert 0 < sum(entry.offsets.topics["order-events"].values()) < events_program.RECORDS, "the kills proved nothing"
    assert run(url, program="events_program") == 0
    events_program.check(broker)


def test_a_query_killed_where_spark_has_a_part_in_it_ends_with_the_right_answer(data: Path) -> None:
    progressed = []
    for failpoint in FAILPOINTS:
        code = run(f"file:{data}", failpoint)
        assert code != 0, f"{failpoint} was never reached"
        check(EmbeddedBroker.shared(data))
        entry = read_entry(EmbeddedBroker.shared(data), "orders-query")
        progressed.append(0 if entry is None else sum(entry.offsets.topics.get("orders", {}).values()))

    assert progressed[-1] < RECORDS, "the kills came too late to prove anything"
    abandoned = data / "queries" / "orders-query" / "staging" / "1-1" / "left-by-a-killed-process"
    abandoned.parent.mkdir(parents=True, exist_ok=True)
    abandoned.write_bytes(b"output that was never published")
    assert run(f"file:{data}", "state.written:4") == 0, "Spark tries a task again whose worker died"
    assert not abandoned.exists()
    check(EmbeddedBroker.shared(data))
    entry = read_entry(EmbeddedBroker.shared(data), "orders-query")
    assert entry is not None
    assert sum(entry.offsets.topics["orders"].values()) == RECORDS

    missing: Any = Answer(EmbeddedBroker.shared(data), entry.offsets.topics["orders"]).totals
    kept = {(key.key, key.start_ms) for key in potok.open_tables(data, "orders-query")["totals"].all()}
    closing = entry.watermarks["totals"]
    assert kept == {place for place in missing if place[1] + 660_000 > closing}

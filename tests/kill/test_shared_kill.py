"""Kill a shared query at every durable step, start it again with the same members, and compare with plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.snapshots.ledger_view import read_entry
from potok.testing.outputs import read_outputs
from tests.kill import orders_program
from tests.kill.answer import Answer, check
from tests.kill.shared_program import PREFIXES

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(900)]

PARTITIONS = 2
RECORDS = 2_000
BATCH = 150

DURABLE = [
    "state.before",
    "epoch.started:3",
    "ledger.before:2",
    "log.publish.written:2",
    "log.publish.synced:2",
    "log.publish.committed:2",
    "log.publish.before:6",
]
WITH_SPARK = ["epoch.started:3", "log.publish.committed:2", "batch.done:2", "log.publish.before:6"]
"""The third epoch is that of the member that comes while the others run; by the last it has had its turn. With Spark,
a batch that was started, and one that was committed, is in its checkpoint when it starts again."""

KAFKA_FAILPOINTS = ["log.publish.written:2", "log.publish.sent:2", "log.publish.sent:3", "log.publish.committed:4"]
"""After `sent` Kafka has the output of one member, its ledger does not know it, and the others are not committed."""


def run(url: str, failpoint: str = "", prefix: str = "", program: str = "shared_program") -> int:
    finished = subprocess.run(
        [sys.executable, "-m", f"tests.kill.{program}", url, str(BATCH), prefix],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "POTOK_FAILPOINT": failpoint},
        timeout=180,
        capture_output=True,
        check=False,
    )
    return finished.returncode


def write(broker: Broker, prefix: str = "") -> None:
    records = [LogRecord(*orders_program.record(number)) for number in range(RECORDS)]
    for each in PREFIXES:
        broker.create_topic(f"{prefix}{each}orders", PARTITIONS)
        broker.append(f"{prefix}{each}orders", records)


def progress(broker: Broker, prefix: str = "") -> list[int]:
    """How far each member has come."""
    entries = [(each, read_entry(broker, f"{prefix}{each}orders-query")) for each in PREFIXES]
    return [
        0 if entry is None else sum(entry.offsets.topics.get(f"{prefix}{each}orders", {}).values())
        for each, entry in entries
    ]


def check_all(broker: Broker, prefix: str = "") -> None:
    """Whether all that each member shows is right."""
    for each in PREFIXES:
        if read_entry(broker, f"{prefix}{each}orders-query") is not None:
            check(broker, prefix + each)


@pytest.mark.parametrize(("program", "failpoints"), [("shared_without_spark", DURABLE), ("shared_program", WITH_SPARK)])
def test_a_shared_query_killed_at_every_durable_step_ends_with_the_right_answers(
    tmp_path: Path, program: str, failpoints: list[str]
) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    write(broker)
    came: list[list[int]] = []
    for failpoint in failpoints:
        assert run(broker.url, failpoint, program=program) != 0, f"{failpoint} was never reached"
        check_all(broker)
        came.append(progress(broker))
    assert came == sorted(came)
    assert all(0 < records < RECORDS for records in came[-1]), f"the kills proved nothing: {came[-1]}"
    assert run(broker.url, program=program) == 0
    check_all(broker)
    assert progress(broker) == [RECORDS] * len(PREFIXES)


def test_a_shared_query_on_kafka_killed_between_the_commits_of_its_queries_writes_each_result_once(
    kafka: ServerStatus, tmp_path: Path
) -> None:
    prefix = "shared-killed-"
    broker = open_broker(f"{kafka.url}?home={tmp_path}")
    write(broker, prefix)
    for failpoint in KAFKA_FAILPOINTS:
        assert run(broker.url, failpoint, prefix) != 0, f"{failpoint} was never reached"
        for each in PREFIXES:
            # Kafka may be one batch ahead of the ledger, so only what would come twice is wrong here.
            whole = Answer(broker, broker.end_offsets(f"{prefix}{each}orders"), f"{prefix}{each}orders").large
            if broker.has_topic(f"{prefix}{each}large"):
                assert Counter(record.raw_value for record in read_outputs(broker, f"{prefix}{each}large")) <= whole
    assert 0 < min(progress(broker, prefix)[:2]) < RECORDS, "the kills proved nothing"
    assert run(broker.url, prefix=prefix) == 0
    check_all(broker, prefix)
    assert progress(broker, prefix) == [RECORDS] * len(PREFIXES)

"""Kill a shared query at every durable step, start it again with the same members, and compare with plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from potok.log.broker import Broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.views.ledger_view import read_entry
from tests.kill import orders_program
from tests.kill.answer import check
from tests.kill.shared_program import PREFIXES

if TYPE_CHECKING:
    from potok.log.kafka.server import ServerStatus

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(900)]

PARTITIONS = 2
RECORDS = 2_000
BATCH = 150

FAILPOINTS = [
    "epoch.begun:2",
    "state.before",
    "epoch.begun:3",
    "ledger.before:2",
    "log.publish.before:2",
    "log.publish.written:2",
    "log.publish.synced:2",
    "log.publish.committed:2",
    "ledger.committed",
    "commit_log.before:2",
]
"""The third epoch is that of the member that comes while the others run."""

KAFKA_FAILPOINTS = ["log.publish.written:2", "log.publish.sent:2", "log.publish.sent:3", "log.publish.committed:4"]
"""After `sent` Kafka has the output of one member, its ledger does not know it, and the others are not committed."""


def run(url: str, failpoint: str = "", prefix: str = "") -> int:
    finished = subprocess.run(
        [sys.executable, "-m", "tests.kill.shared_program", url, str(BATCH), prefix],
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
    """How far each member has come, after a look at whether all that it shows is right."""
    found: list[int] = []
    for each in PREFIXES:
        entry = read_entry(broker, f"{prefix}{each}orders-query")
        if entry is not None:
            check(broker, prefix + each)
        found.append(0 if entry is None else sum(entry.offsets.topics.get(f"{prefix}{each}orders", {}).values()))
    return found


def test_a_shared_query_killed_at_every_durable_step_ends_with_the_right_answers(tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    write(broker)
    came: list[list[int]] = []
    for failpoint in FAILPOINTS:
        assert run(broker.url, failpoint) != 0, f"{failpoint} was never reached"
        came.append(progress(broker))
    assert came == sorted(came)
    assert all(0 < records < RECORDS for records in came[-1]), f"the kills proved nothing: {came[-1]}"
    assert run(broker.url) == 0
    assert progress(broker) == [RECORDS] * len(PREFIXES)


def test_a_shared_query_on_kafka_killed_between_the_commits_of_its_members_writes_each_result_once(
    kafka: ServerStatus, tmp_path: Path
) -> None:
    prefix = "shared-killed-"
    broker = open_broker(f"{kafka.url}?home={tmp_path}")
    write(broker, prefix)
    for failpoint in KAFKA_FAILPOINTS:
        assert run(broker.url, failpoint, prefix) != 0, f"{failpoint} was never reached"
        came = progress(broker, prefix)
    assert any(records < RECORDS for records in came), "the kills proved nothing"
    assert run(broker.url, prefix=prefix) == 0
    assert progress(broker, prefix) == [RECORDS] * len(PREFIXES)

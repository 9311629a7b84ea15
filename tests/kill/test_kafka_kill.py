"""Kill a query that writes to Kafka again and again; a plain consumer must see every result exactly once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from potok.log.open import open_broker
from potok.records.log_record import LogRecord
from potok.snapshots.ledger_view import read_entry
from tests.kill import orders_program
from tests.kill.answer import Answer, check
from tests.kill.test_kill import PARTITIONS, RECORDS, run

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.timeout(600)]

WITHOUT_SPARK = [
    "state.written",
    "log.publish.before:2",
    "log.publish.written:2",
    "log.publish.sent",
    "log.publish.committed",
]
BY_TASK = [
    "log.publish.slot.written",
    "log.publish.slot.written:2",
    "log.publish.slot.written:5",
    "log.publish.slots",
    "log.publish.written:2",
    "log.publish.sent",
    "log.publish.committed",
]
"""Inside the transactions of single tasks, between them and that of the driver, and after it."""

WITH_SPARK = ["log.publish.written:2", "log.publish.sent:2", "log.publish.committed:2"]
"""Before, inside and after the transaction: after `sent` Kafka has the output and the ledger does not know it."""


def committed(bootstrap: str, topic: str) -> Counter[bytes]:
    """What a program that knows nothing of Potok reads."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "plain",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: Counter[bytes] = Counter()
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(10)
        assert message is not None, "Kafka went silent"
        if message.error():
            ended.add(message.partition())
        else:
            found[message.value()] += 1
    consumer.close()
    return found


@pytest.mark.parametrize(
    ("program", "failpoints", "prefix"),
    [
        ("without_spark", WITHOUT_SPARK, "killed-alone-"),
        ("by_task_without_spark", BY_TASK, "killed-by-task-"),
        ("orders_program", WITH_SPARK, "killed-"),
    ],
)
def test_a_query_on_kafka_killed_around_its_transactions_writes_each_result_once(
    kafka: ServerStatus, tmp_path: Path, program: str, failpoints: list[str], prefix: str
) -> None:
    broker = open_broker(f"{kafka.url}?home={tmp_path}")
    broker.create_topic(f"{prefix}orders", PARTITIONS)
    broker.append(f"{prefix}orders", [LogRecord(*orders_program.record(number)) for number in range(RECORDS)])
    answer = Answer(broker, broker.end_offsets(f"{prefix}orders"), f"{prefix}orders")
    seen: list[int] = []
    for failpoint in failpoints:
        assert run(broker.url, failpoint, prefix, program) != 0, f"{failpoint} was never reached"
        if broker.has_topic(f"{prefix}large"):
            visible = committed(kafka.bootstrap, f"{prefix}large")
            assert visible <= answer.large, "something came twice"
            seen.append(visible.total())
    assert seen == sorted(seen)
    assert 0 < seen[-1] < answer.large.total(), "the kills proved nothing"

    assert run(broker.url, "", prefix, program) == 0
    check(broker, prefix)
    assert committed(kafka.bootstrap, f"{prefix}large") == answer.large
    entry = read_entry(broker, f"{prefix}orders-query")
    assert entry is not None
    assert broker.committed(f"{prefix}orders-query", f"{prefix}orders") == entry.offsets.topics[f"{prefix}orders"]

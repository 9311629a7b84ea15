"""How many records there are in topics whose offsets are not all records."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from log.kafka.test_read import settle, write
from potok.log.broker import TopicDescription
from potok.log.kafka.admin import count
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.records.log_record import LogRecord


def reported(topics: list[TopicDescription]) -> dict[str, tuple[int, bool]]:
    return {topic.name: (topic.records, topic.exact) for topic in topics}


def plain(log: KafkaBroker, topic: str, records: int) -> None:
    log.append(topic, [LogRecord(b"k%d" % n, b"v", 1) for n in range(records)])


def test_markers_and_what_was_aborted_are_not_records(log: KafkaBroker, stranger: Producer) -> None:
    log.create_topic("one")
    for n in range(3):
        write(stranger, "one", b"%d.a" % n, b"%d.b" % n)
    write(stranger, "one", *[b"gone"] * 5, commit=False)
    settle(log, "one", 15)
    log.create_topic("spread", 3)
    plain(log, "spread", 40)
    log.create_topic("empty", 2)
    assert reported(log.describe_topics(["empty", "one", "spread"])) == {
        "empty": (0, True),
        "one": (6, True),
        "spread": (40, True),
    }
    assert reported([log.describe_topic("one")]) == {"one": (15, False)}


def test_long_partitions_are_bounded_and_short_ones_are_counted(
    log: KafkaBroker, stranger: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.create_topic("long")
    write(stranger, "long", *[b"v"] * 30)
    settle(log, "long", 31)
    log.create_topic("short")
    write(stranger, "short", b"v")
    settle(log, "short", 2)
    monkeypatch.setattr(count, "MOST_OFFSETS", 10)
    assert reported(log.describe_topics(["long", "short"])) == {"long": (31, False), "short": (1, True)}


def test_what_was_not_read_in_time_is_a_bound(
    log: KafkaBroker, stranger: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.create_topic("slow")
    write(stranger, "slow", b"v")
    settle(log, "slow", 2)
    monkeypatch.setattr(count, "TIMEOUT_S", 0.0)
    assert reported(log.describe_topics(["slow"])) == {"slow": (2, False)}


def test_records_that_are_written_meanwhile_do_not_count(log: KafkaBroker) -> None:
    log.create_topic("grows")
    plain(log, "grows", 5)
    before = log.describe_topic("grows")
    plain(log, "grows", 5)
    assert reported(count.count_records(log._kafka.clients, [before])) == {"grows": (5, True)}

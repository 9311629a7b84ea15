"""What Kafka would refuse is known before it is sent, and nothing else is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from log.records import read_all
from potok.log.broker import LOG_SCHEMA
from potok.log.kafka.errors import KafkaRefused
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.log.open import open_broker

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus

NOW = 1_700_000_000_000
HEADERS = [{"name": "header", "value": b"x" * 100}, {"name": "other", "value": None}]


def batch(*rows: dict[str, object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"key": b"k", "timestamp": NOW, **row} for row in rows], LOG_SCHEMA)


def publish(log: KafkaBroker, rows: pa.RecordBatch, tmp_path: Path) -> None:
    log.publish([log.stage(tmp_path, "t", 0, rows)], {})


def create(kafka: ServerStatus, **config: object) -> None:
    """A topic as somebody else made it."""
    named = {name.replace("_", "."): str(value) for name, value in config.items()}
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic("t", 1, config=named)])["t"].result(30)


@pytest.mark.parametrize("headers", [None, HEADERS], ids=["bare", "headers"])
def test_the_largest_record_that_fits_is_taken(log: KafkaBroker, tmp_path: Path, headers: object) -> None:
    log.create_topic("t")
    most = log.max_record_bytes - 36 - 1 - (0 if headers is None else 6 + 100 + 5 + 2 * 10)
    largest, larger = ({"value": bytes(size), "headers": headers} for size in (most, most + 1))
    misfits = log.unfit("t", batch({"value": b"small"}, largest, larger))
    assert misfits == {2: "a record of 1,000,001 bytes is over the limit of 1,000,000"}
    publish(log, batch({"value": b"small"}, largest), tmp_path)
    assert [len(record.value or b"") for record in read_all(log, "t")] == [5, most]


def test_a_topic_may_take_less_than_the_client(log: KafkaBroker, kafka: ServerStatus, tmp_path: Path) -> None:
    create(kafka, max_message_bytes=2_000)
    most = 2_000 - 61 - 36 - 1
    misfits = log.unfit("t", batch({"value": bytes(most)}, {"value": bytes(most + 1)}))
    assert set(misfits) == {1}
    publish(log, batch({"value": bytes(most)}), tmp_path)
    assert len(read_all(log, "t")) == 1


def test_what_is_compressed_may_be_larger_than_the_topic_takes(kafka: ServerStatus, tmp_path: Path) -> None:
    create(kafka, max_message_bytes=2_000)
    with_gzip = open_broker(f"{kafka.url}?compression.type=gzip&home={tmp_path / 'data'}")
    assert isinstance(with_gzip, KafkaBroker)
    assert with_gzip.unfit("t", batch({"value": bytes(100_000)}, {"value": bytes(1_000_000)})).keys() == {1}
    publish(with_gzip, batch({"value": bytes(100_000)}), tmp_path)
    with_gzip.delete_topic("t")
    with_gzip.close()


def test_times_before_1970_are_refused(log: KafkaBroker) -> None:
    log.create_topic("t")
    misfits = log.unfit("t", batch({"timestamp": 0}, {"timestamp": -1}, {"timestamp": -5}, {"timestamp": None}))
    assert set(misfits) == {1, 2}
    assert "no time before 1970" in misfits[2]


def test_times_that_the_topic_does_not_take_are_refused(log: KafkaBroker, kafka: ServerStatus, tmp_path: Path) -> None:
    create(kafka, message_timestamp_after_max_ms=60_000, message_timestamp_before_max_ms=3_600_000)
    now = round(time.time() * 1000)
    times = (now, now - 3_000_000, now + 50_000, now - 4_000_000, now + 70_000)
    rows = batch(*({"timestamp": at} for at in times))
    misfits = log.unfit("t", rows)
    assert set(misfits) == {3, 4}
    assert f"as far from the present as {times[4]} ms" in misfits[4]
    publish(log, rows.slice(0, 3), tmp_path)
    for row in (3, 4):
        with pytest.raises(KafkaRefused):
            publish(log, rows.slice(row, 1), tmp_path)


def test_a_topic_that_kafka_stamps_takes_any_time(log: KafkaBroker, kafka: ServerStatus) -> None:
    create(kafka, message_timestamp_type="LogAppendTime", message_timestamp_after_max_ms=1)
    assert log.unfit("t", batch({"timestamp": 1}, {"timestamp": 1 << 50}, {"timestamp": -1})).keys() == {2}


def test_a_compacted_topic_takes_no_record_without_a_key(log: KafkaBroker) -> None:
    log.create_topic("t", cleanup_policy="compact")
    misfits = log.unfit("t", batch({"value": b"v"}, {"key": None, "value": b"v"}))
    assert misfits == {1: 'topic "t" is compacted and rejects records without a key'}
    assert log.unfit("t", batch()) == {}


def test_limits_that_may_not_be_seen_are_left_to_kafka(log: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    log.create_topic("t", cleanup_policy="compact")

    def refuse(name: str) -> None:
        raise KafkaRefused("here", "no right to see it")

    monkeypatch.setattr(log._kafka.topics, "entries", refuse)
    assert log.unfit("t", batch({"key": None}, {"value": bytes(1_000_000)})).keys() == {1}


def test_limits_are_asked_for_once_in_a_while(log: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    log.create_topic("t")
    asked: list[str] = []
    entries = log._kafka.topics.entries
    monkeypatch.setattr(log._kafka.topics, "entries", lambda name: asked.append(name) or entries(name))
    for _ in range(3):
        log.unfit("t", batch({"value": b"v"}))
    assert asked == ["t"]

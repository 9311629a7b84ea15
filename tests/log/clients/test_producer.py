from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from log.records import read_all, values
from potok.errors import LogError
from potok.log.clients.producer import Producer
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import BrokerClosed, DiskFull, KeylessRecord, RecordTooLarge, TopicNotFound


@dataclass
class Order:
    order_id: str
    amount: float


def test_values_become_bytes_by_their_type(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    sent = [
        b"raw",
        "текст",
        {"a": 1},
        Order("o1", 2.5),
        None,
        7,
        [Decimal("1.5")],
        {"at": datetime(2024, 1, 1, tzinfo=UTC)},
    ]
    with Producer(broker) as producer:
        for value in sent:
            producer.send("t", value)
    assert values(broker, "t") == [
        b"raw",
        "текст".encode(),
        b'{"a":1}',
        b'{"order_id":"o1","amount":2.5}',
        None,
        b"7",
        b'["1.5"]',
        b'{"at":"2024-01-01T00:00:00+00:00"}',
    ]


def test_key_time_headers_and_partition_arrive(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 3)
    with Producer(broker) as producer:
        producer.send(
            "t", "v", key="k", timestamp=datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), headers={"a": "b"}, partition=2
        )
    (record,) = read_all(broker, "t", 2)
    assert (record.key, record.timestamp_ms, record.headers) == (b"k", 5000, (("a", b"b"),))


def test_a_time_without_a_zone_is_in_utc(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        broker.create_topic("t")
        with Producer(broker) as producer:
            producer.send("t", "v", timestamp=datetime(1970, 1, 1, 0, 0, 5))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [record.timestamp_ms for record in read_all(broker, "t")] == [5000]


def test_a_batch_is_appended_at_once(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create_topic("t")
    appends = []
    append = broker.append
    monkeypatch.setattr(broker, "append", lambda *args: appends.append(len(args[1])) or append(*args))
    with Producer(broker, batch_records=100, linger="60 s") as producer:
        for n in range(250):
            producer.send("t", n)
    assert appends == [100, 100, 50]
    assert values(broker, "t") == [b"%d" % n for n in range(250)]


def test_a_record_that_lingers_is_written_without_another_call(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    producer = Producer(broker, linger="1 ms")
    producer.send("t", "v")
    while broker.end_offsets("t") == {0: 0}:
        pass
    assert values(broker, "t") == [b"v"]
    producer.close()


def test_without_lingering_a_record_is_durable_when_send_returns(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    producer = Producer(broker, linger=0)
    producer.send("t", "v")
    assert values(broker, "t") == [b"v"]


def test_order_holds_where_given_and_chosen_partitions_mix(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with Producer(broker, linger="60 s") as producer:
        for n in range(6):
            producer.send("t", n, partition=0 if n % 2 else None)
    assert values(broker, "t") == [b"%d" % n for n in range(6)]


def test_a_failed_append_is_raised_and_its_records_are_kept(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t")
    producer = Producer(broker, linger="60 s")
    producer.send("t", 1)

    def full(*args: object) -> None:
        raise DiskFull(broker.directory, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(broker, "append", full)
        with pytest.raises(DiskFull):
            producer.flush()
        with pytest.raises(DiskFull):
            producer.close()
    producer.send("t", 2)
    producer.close()
    assert values(broker, "t") == [b"1", b"2"]


def test_what_failed_in_the_background_is_raised_by_the_next_send(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t")
    producer = Producer(broker, linger="1 ms")
    with monkeypatch.context() as patched:
        patched.setattr(broker, "append", lambda *args: (_ for _ in ()).throw(DiskFull(broker.directory, "no space")))
        producer.send("t", 1)
        while not producer._failed:
            pass
        with pytest.raises(DiskFull):
            producer.send("t", 2)
    producer.close()
    assert values(broker, "t") == [b"1"]


def test_a_topic_that_does_not_exist_is_created(broker: EmbeddedBroker) -> None:
    with Producer(broker) as producer:
        producer.send("new", "v")
    assert values(broker, "new") == [b"v"]


def test_errors_are_raised_by_the_send_that_caused_them(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    producer = Producer(broker, create_topics=False)
    with pytest.raises(TopicNotFound):
        producer.send("nowhere", 1)
    with pytest.raises(TopicNotFound, match="no partition 5"):
        producer.send("t", 1, partition=5)
    with pytest.raises(LogError, match="cannot be written as JSON"):
        producer.send("t", object())
    broker.max_record_bytes = 10
    with pytest.raises(RecordTooLarge):
        producer.send("t", "x" * 11)
    producer.close()
    with pytest.raises(BrokerClosed):
        producer.send("t", 1)
    assert broker.end_offsets("t") == {0: 0}


def test_a_program_that_forgets_to_close_loses_nothing(run, broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    done = run("from potok.log.clients.producer import Producer\nProducer(DATA).send('t', 'v')")
    assert done.returncode == 0, done.stderr
    assert values(broker, "t") == [b"v"]


def test_a_record_without_a_key_does_not_get_into_the_batch_of_a_compacted_topic(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", cleanup_policy="compact")
    with Producer(broker, linger="60 s") as producer:
        producer.send("t", b"1", key="a")
        with pytest.raises(KeylessRecord, match="give every record a key"):
            producer.send("t", b"2")
        producer.send("t", b"3", key="b")
    assert values(broker, "t") == [b"1", b"3"]

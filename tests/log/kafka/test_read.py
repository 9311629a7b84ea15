from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from log.records import batch_of, read_all, read_range, values
from potok.log.errors import OffsetOutOfRange, TopicNotFound
from potok.log.kafka.admin.topics import KnownTopic
from potok.log.kafka.clients import Clients
from potok.log.kafka.errors import KafkaRefused
from potok.log.kafka.kafka_broker import KafkaBroker
from potok.log.kafka.options import KafkaOptions
from potok.log.kafka.read import Readers
from potok.records.log_record import LogRecord

if TYPE_CHECKING:
    from potok.log.kafka.development.server import ServerStatus


def write(producer: Producer, topic: str, *written: bytes, commit: bool = True) -> None:
    producer.begin_transaction()
    for value in written:
        producer.produce(topic, value, b"k", 0, timestamp=5)
    producer.flush(30)
    (producer.commit_transaction if commit else producer.abort_transaction)(30)


def settle(log: KafkaBroker, topic: str, end: int) -> None:
    """Wait for the end of a topic: a transaction is committed a little before that is seen."""
    log._kafka.positions.wait_until_visible({(topic, 0): end - 1})
    assert log.end_offsets(topic)[0] == end


def test_the_markers_of_transactions_are_gaps(log: KafkaBroker, stranger: Producer) -> None:
    log.create_topic("t")
    for n in range(3):
        write(stranger, "t", b"%d.a" % n, b"%d.b" % n)
    settle(log, "t", 9)
    found = read_all(log, "t")
    assert [(record.offset, record.value) for record in found] == [
        (0, b"0.a"),
        (1, b"0.b"),
        (3, b"1.a"),
        (4, b"1.b"),
        (6, b"2.a"),
        (7, b"2.b"),
    ]
    for start in (0, 2, 3, 8):
        for end in (3, 5, 8, 9):
            part = [record.offset for record in read_range(log, "t", 0, min(start, end), end)]
            assert part == [offset for offset in (0, 1, 3, 4, 6, 7) if start <= offset < end]


def test_what_was_aborted_is_never_read(log: KafkaBroker, stranger: Producer) -> None:
    log.create_topic("t")
    write(stranger, "t", b"gone", commit=False)
    write(stranger, "t", b"kept")
    write(stranger, "t", *[b"gone"] * 50, commit=False)
    settle(log, "t", 2 + 2 + 51)
    assert values(log, "t") == [b"kept"]
    assert list(log.read("t", 0, 4, 55)) == []


def test_an_open_transaction_hides_itself_and_what_comes_after_it(log: KafkaBroker, stranger: Producer) -> None:
    log.create_topic("t")
    log.append("t", [LogRecord(b"k", b"before")])
    stranger.begin_transaction()
    stranger.produce("t", b"open", b"k", 0)
    stranger.flush(30)
    log.append("t", [LogRecord(b"k", b"after")])
    assert log.end_offsets("t") == {0: 1}
    assert values(log, "t") == [b"before"]
    with pytest.raises(OffsetOutOfRange, match="it holds offsets 0 to 1"):
        list(log.read("t", 0, 0, 2))
    stranger.commit_transaction(30)
    settle(log, "t", 4)
    assert values(log, "t") == [b"before", b"open", b"after"]


def test_deleted_records_are_distinguished_from_an_empty_range(log: KafkaBroker, kafka: ServerStatus) -> None:
    log.create_topic("t")
    log.append("t", batch_of([b"%d" % n for n in range(10)]))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.delete_records([TopicPartition("t", 0, 4)]).values():
        future.result()
    assert log.start_offsets("t") == {0: 4}
    assert values(log, "t") == [b"%d" % n for n in range(4, 10)]
    with pytest.raises(OffsetOutOfRange, match="deleted by retention"):
        list(log.read("t", 0, 2, 6))
    assert [record.offset for record in read_range(log, "t", 0, 4, 6)] == [4, 5]


def test_partitions_that_are_added_are_found(log: KafkaBroker, kafka: ServerStatus, monkeypatch) -> None:
    log.create_topic("t")
    log.append("t", [LogRecord(b"k", b"old")])
    assert values(log, "t") == [b"old"]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_partitions([NewPartitions("t", 3)])["t"].result()
    monkeypatch.setattr("potok.log.kafka.admin.topics._FRESH_S", 0.0)
    assert log.partitions("t") == 3
    assert log.end_offsets("t") == {0: 1, 1: 0, 2: 0}
    log.append("t", [LogRecord(b"k", b"new")], 2)
    assert values(log, "t", 2) == [b"new"]


def test_a_topic_deleted_by_another_process_is_missed(log: KafkaBroker, kafka: ServerStatus, monkeypatch) -> None:
    monkeypatch.setattr("potok.log.kafka.admin.topics._FRESH_S", 0.0)
    log.create_topic("t", 2)
    log.append("t", batch_of([b"a"] * 5), 0)
    assert len(values(log, "t")) == 5
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_topics(["t"])["t"].result()
    with pytest.raises(TopicNotFound):
        log.end_offsets_of(["t"])
    with pytest.raises(TopicNotFound):
        log.append("t", batch_of([b"a"]))


def test_a_topic_created_again_by_another_process_is_read_from_its_new_beginning(
    log: KafkaBroker, kafka: ServerStatus, monkeypatch
) -> None:
    monkeypatch.setattr("potok.log.kafka.admin.topics._FRESH_S", 0.0)
    log.create_topic("t", 2)
    log.append("t", batch_of([b"a"] * 5), 0)
    assert len(values(log, "t")) == 5
    other = KafkaBroker(log.options, log.directory)
    other.delete_topic("t")
    other.create_topic("t")
    other.append("t", [LogRecord(b"k", b"z")])
    other.close()
    assert log.end_offsets("t") == {0: 1}
    assert values(log, "t") == [b"z"]
    log.append("t", [LogRecord(b"k", b"y")])
    assert values(log, "t") == [b"z", b"y"]


def test_the_time_of_the_server_is_taken_where_a_topic_says_so(log: KafkaBroker, kafka: ServerStatus) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic("t", 1, config={"message.timestamp.type": "LogAppendTime"})])["t"].result()
    log.append("t", [LogRecord(b"k", b"v", 5)])
    (record,) = read_all(log, "t")
    assert record.timestamp_ms == record.ingested_ms > 1_600_000_000_000


def test_headers_of_other_producers_may_have_no_value(log: KafkaBroker, kafka: ServerStatus) -> None:
    log.create_topic("t")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce("t", b"v", headers=[("a", None), ("b", b"\xff")], timestamp=5)
    producer.flush(30)
    (record,) = read_all(log, "t")
    assert record.headers == (("a", None), ("b", b"\xff"))


def test_consumers_are_kept_and_never_too_many(log: KafkaBroker) -> None:
    log.create_topic("t", 12)
    for partition in range(12):
        log.append("t", batch_of([b"%d" % partition]), partition)
    open_at_once = [log.read("t", partition, 0, 1) for partition in range(12)]
    assert [next(batches).column("value").to_pylist() for batches in open_at_once] == [[b"%d" % n] for n in range(12)]
    for batches in open_at_once:
        assert list(batches) == []
    idle = log._kafka.readers._idle
    assert len(idle) == 8
    kept = set(idle)
    assert values(log, "t", 3) == [b"3"]
    assert set(log._kafka.readers._idle) == kept


class FailedConsumer:
    """A client that has failed for good, at one of its calls."""

    def __init__(self, call: str) -> None:
        self._call = call

    def _reached(self, call: str) -> None:
        if call == self._call:
            raise KafkaException(KafkaError(KafkaError._FATAL, "gone"))

    def assign(self, _: object) -> None:
        self._reached("assign")

    def consume(self, *_: object) -> list[object]:
        self._reached("consume")
        return []

    def close(self) -> None: ...


@pytest.mark.parametrize("call", ["assign", "consume"])
def test_an_error_of_the_client_is_an_error_of_the_log(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = Clients(KafkaOptions(("nobody:1",)))
    monkeypatch.setattr(clients, "reader", lambda **_: FailedConsumer(call))
    positions: Any = None
    topic = KnownTopic("t", "id", 1)
    with pytest.raises(KafkaRefused, match="gone"):
        list(Readers(clients, positions).read(topic, 0, 0, 1))

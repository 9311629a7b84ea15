from __future__ import annotations

import threading
from datetime import timedelta
from itertools import islice

import pytest

from log.records import read_all
from potok.errors import LogError
from potok.log.clients.consumer import Consumer
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import OffsetOutOfRange, TopicNotFound
from potok.records.log_record import LogRecord


def fill(broker: EmbeddedBroker, topic: str, count: int, partition: int = 0, first: int = 0) -> None:
    broker.append(topic, [LogRecord(b"k", b"%d" % n, n + 1) for n in range(first, first + count)], partition)


def test_everything_is_read_from_the_beginning_to_the_end(broker: EmbeddedBroker) -> None:
    broker.create_topic("a", 2)
    broker.create_topic("b")
    for topic, partition in (("a", 0), ("a", 1), ("b", 0)):
        fill(broker, topic, 25, partition)
    consumer = Consumer(broker, ["a", "b"], start="earliest", until_end=True, batch_records=10)
    found: dict[tuple[str, int], list[int]] = {}
    for record in consumer:
        assert record.offset == len(found.setdefault((record.topic, record.partition), []))
        found[record.topic, record.partition].append(record.json())
    assert found == {("a", 0): [*range(25)], ("a", 1): [*range(25)], ("b", 0): [*range(25)]}


def test_only_what_comes_later_is_read_from_the_latest_record_on(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    fill(broker, "t", 3)
    consumer = Consumer(broker, "t", start="latest")
    assert consumer.poll() == []
    fill(broker, "t", 2, first=3)
    assert [record.json() for record in consumer.poll()] == [3, 4]


def test_a_group_resumes_at_its_committed_offsets(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    fill(broker, "t", 5)
    with Consumer(broker, "t", group="g", start="earliest") as first:
        assert [record.json() for record in first.poll(max_records=2)] == [0, 1]
        first.commit()
        assert [record.json() for record in first.poll(max_records=2)] == [2, 3]
    assert [record.json() for record in Consumer(broker, "t", group="g").poll()] == [2, 3, 4]
    assert [record.json() for record in Consumer(broker, "t", group="other", start="earliest").poll()] == [*range(5)]


def test_a_commit_inside_the_loop_counts_only_what_was_handed_out(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    fill(broker, "t", 5)
    consumer = Consumer(broker, "t", group="g", start="earliest")
    for _ in islice(consumer, 2):
        consumer.commit()
    assert broker.committed("g", "t") == {0: 2}


def test_seeking_takes_effect_with_the_next_record(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    fill(broker, "t", 6)
    consumer = Consumer(broker, "t", start="earliest", until_end=True)
    found = []
    for record in consumer:
        found.append(record.json())
        if record.json() == 1:
            consumer.seek("t", 0, 4)
    assert found == [0, 1, 4, 5]
    with pytest.raises(TopicNotFound):
        consumer.seek("t", 1, 0)


def test_an_iterator_waits_for_new_records(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    consumer = Consumer(broker, "t", start="earliest")
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.extend(record.json() for record in islice(consumer, 4)))
    reader.start()
    fill(broker, "t", 2)
    fill(broker, "t", 2, first=2)
    reader.join(30)
    assert found == [0, 1, 2, 3]


def test_polling_waits_for_the_first_record(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    consumer = Consumer(broker, "t")
    late = threading.Thread(target=fill, args=(broker, "t", 1))
    late.start()
    assert [record.json() for record in consumer.poll(timeout=30)] == [0]
    late.join()


def test_records_come_with_bytes_text_and_headers(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.append("t", [LogRecord(b"key", "да".encode(), 9, (("h", b"1"),)), LogRecord(None, None, 10)])
    first, second = Consumer(broker, "t", start="earliest").poll()
    assert (first.key_text(), first.text(), first.headers, first.timestamp_ms) == ("key", "да", (("h", b"1"),), 9)
    assert first.ingested_ms > 9
    assert (second.key_text(), second.text(), second.json()) == (None, None, None)


def test_committing_without_a_group_is_an_error(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with pytest.raises(LogError, match="without a group"):
        Consumer(broker, "t").commit()


def test_a_topic_created_again_is_noticed(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    fill(broker, "t", 5)
    consumer = Consumer(broker, "t", start="latest")
    broker.delete_topic("t")
    with pytest.raises(TopicNotFound):
        consumer.poll()
    broker.create_topic("t")
    with pytest.raises(OffsetOutOfRange):
        consumer.poll()


def test_offsets_that_compaction_left_empty_are_passed(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    for n in range(6):
        broker.append("t", [LogRecord(b"k%d" % (n % 2), b"%d" % n, n + 1)])
    broker.compact_topic("t")
    left = [record.offset for record in read_all(broker, "t")]
    assert left[0] > 1
    with Consumer(broker, "t", group="g", start="earliest", until_end=True, batch_records=1) as consumer:
        assert [record.offset for record in consumer] == left
        consumer.commit()
    assert broker.committed("g", "t") == {0: 6}
    assert [record.offset for record in Consumer(broker, "t", start="earliest").poll(max_records=1)] == left[:1]


def test_a_timeout_is_text_a_timedelta_or_seconds(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with Consumer(broker, "t") as consumer:
        assert consumer.poll("1 ms") == consumer.poll(timedelta(milliseconds=1)) == consumer.poll(0.001) == []
        fill(broker, "t", 1)
        assert len(consumer.poll("10 seconds")) == 1

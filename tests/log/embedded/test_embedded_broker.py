from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from log.records import batch_of, read_all, values
from potok.errors import LogError
from potok.log.broker import READ_SCHEMA, AppendResult, TopicConfig
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import InvalidName, MetadataConflict, RecordTooLarge, TopicExists, TopicNotFound
from potok.log.partitioner import partition_of
from potok.records.log_record import LogRecord


def test_topics_are_created_listed_described_and_deleted(broker: EmbeddedBroker) -> None:
    broker.create_topic("orders", 2, segment_bytes=1000, retention_ms=5)
    broker.create_topic("Clicks.v1_a-b")
    assert broker.topics() == ["Clicks.v1_a-b", "orders"]
    broker.append("orders", batch_of([b"v"] * 10), 1)
    described = broker.describe_topic("orders")
    assert described.config == TopicConfig(1000, 5, None)
    assert [(p.partition, p.start_offset, p.end_offset, p.segments) for p in described.partitions] == [
        (0, 0, 0, 0),
        (1, 0, 10, 1),
    ]
    assert described.records == 10
    assert described.partitions[1].bytes == sum(f.stat().st_size for f in broker.directory.rglob("*.segment"))
    broker.delete_topic("orders")
    assert broker.topics() == ["Clicks.v1_a-b"]
    assert not broker.has_topic("orders")
    assert [path.name for path in broker.directory.rglob("*.segment")] == []


def test_a_topic_created_again_is_empty_and_has_another_id(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.append("t", [LogRecord(b"k", b"v")])
    broker.commit("g", "t", {0: 1})
    before = broker.describe_topic("t").topic_id
    broker.delete_topic("t")
    broker.create_topic("t")
    assert broker.describe_topic("t").topic_id != before
    assert broker.end_offsets("t") == {0: 0}
    assert broker.committed("g", "t") == {}


def test_creating_a_topic_twice_is_an_error_unless_allowed(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 3)
    with pytest.raises(TopicExists):
        broker.create_topic("t")
    broker.create_topic("t", exist_ok=True)
    assert broker.partitions("t") == 3


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "x" * 250, "заказы", "a\0b"])
def test_a_name_that_is_not_a_topic_is_refused(broker: EmbeddedBroker, name: str) -> None:
    with pytest.raises(InvalidName):
        broker.create_topic(name)
    assert not broker.has_topic(name)


def test_a_topic_needs_a_partition(broker: EmbeddedBroker) -> None:
    with pytest.raises(LogError, match="0 partitions"):
        broker.create_topic("t", 0)


def test_what_is_not_there_is_named(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 2)
    for attempt in (
        lambda: broker.append("no", [LogRecord(b"k", b"v")]),
        lambda: broker.read("no", 0, 0, 0),
        lambda: broker.end_offsets_of(["t", "no"]),
        lambda: broker.delete_topic("no"),
        lambda: broker.publish([broker.stage(Path(), "no", 0, batch_of([b"v"]))], {}),
    ):
        with pytest.raises(TopicNotFound, match='topic "no" does not exist'):
            attempt()
    with pytest.raises(TopicNotFound, match="its partitions are 0 to 1"):
        broker.append("t", [LogRecord(b"k", b"v")], partition=2)


def test_records_come_back_as_they_were_appended(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    sent = [
        LogRecord(b"k", b"v", 1_700_000_000_000),
        LogRecord(None, b"", -5, (("a", b"1"), ("a", b""))),
        LogRecord(b"", None, 7),
    ]
    for records in ([sent[0]], sent, sent * 5):
        (result,) = broker.append("t", records)
        assert result.count == len(records)
    found = read_all(broker, "t")
    expected = [sent[0], *sent, *sent * 5]
    assert [(r.key, r.value, r.timestamp_ms, r.headers) for r in found] == [
        (r.key, r.value, r.timestamp_ms, r.headers) for r in expected
    ]
    assert [r.offset for r in found] == list(range(19))


def test_a_record_without_a_time_gets_the_time_of_its_append(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.append("t", [LogRecord(b"k", b"v")])
    broker.append("t", pa.record_batch({"value": ["a", "b"], "timestamp": pa.array([None, 5], pa.int64())}))
    broker.append("t", pa.record_batch({"value": pa.array([b"c"])}))
    first, second, third, fourth = read_all(broker, "t")
    assert third.timestamp_ms == 5
    assert all(abs(r.timestamp_ms - r.ingested_ms) < 60_000 for r in (first, second, fourth))
    assert min(r.ingested_ms for r in (first, second, third, fourth)) > 1_600_000_000_000


def test_a_batch_may_bring_other_types_and_columns(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.append(
        "t",
        pa.record_batch(
            {
                "offset": pa.array([9] * 6, pa.int64()),
                "value": pa.array(["v"] * 6, pa.large_string()),
                "key": pa.array(["k"] * 6),
                "timestamp": pa.array([5] * 6, pa.timestamp("s", "UTC")),
            }
        ),
    )
    (batch,) = broker.read("t", 0, 0, 6)
    assert batch.schema == READ_SCHEMA
    assert batch.column("timestamp").to_pylist() == [5000] * 6
    assert batch.column("key").to_pylist() == [b"k"] * 6
    assert batch.column("offset").to_pylist() == list(range(6))


def test_a_batch_without_values_is_refused(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with pytest.raises(LogError, match="needs the column value"):
        broker.append("t", pa.record_batch({"key": pa.array([b"k"])}))


def test_an_empty_batch_changes_nothing(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 2)
    assert broker.append("t", []) == []
    assert broker.append("t", batch_of([]), 1) == []
    assert broker.end_offsets("t") == {0: 0, 1: 0}


def test_records_go_to_the_partition_of_their_key(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 4)
    keys = [b"user_%d" % n for n in range(100)]
    results = broker.append("t", batch_of(keys, keys))
    broker.append("t", [LogRecord(b"user_7", b"again")])
    for partition in range(4):
        expected = [key for key in keys if partition_of(key, 4) == partition]
        assert AppendResult(partition, 0, len(expected)) in results
        if partition == partition_of(b"user_7", 4):
            expected.append(b"again")
        assert values(broker, "t", partition) == expected


def test_single_records_without_a_key_take_turns(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 3)
    for _ in range(6):
        broker.append("t", [LogRecord(None, b"v")])
    assert broker.end_offsets("t") == {0: 2, 1: 2, 2: 2}


def test_a_value_of_10_mb_works_and_one_over_the_limit_does_not(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path, max_record_bytes=11 << 20)
    broker.create_topic("t")
    large = bytes(10 << 20)
    broker.append("t", [LogRecord(b"k", large)])
    broker.append("t", batch_of([b"small", large, large, b"small"]))
    assert [len(value or b"") for value in values(broker, "t")] == [10 << 20, 5, 10 << 20, 10 << 20, 5]
    too_large = bytes(12 << 20)
    for attempt in (
        lambda: broker.append("t", [LogRecord(b"k", too_large)]),
        lambda: broker.append("t", batch_of([b"small", too_large])),
        lambda: broker.stage(tmp_path, "t", 0, batch_of([too_large])),
    ):
        with pytest.raises(RecordTooLarge):
            attempt()
    assert broker.end_offsets("t") == {0: 5}
    broker.close()


def test_metadata_keys_are_set_and_deleted_together(broker: EmbeddedBroker) -> None:
    broker.set_metadata({"q/a": b"1", "q/b": b"", "r": b"3"})
    assert broker.list_metadata("q/") == {"q/a": b"1", "q/b": b""}
    broker.set_metadata({"q/a": None, "q/b": b"2"}, expect={"q/a": b"1", "q/c": None})
    assert broker.list_metadata("") == {"q/b": b"2", "r": b"3"}
    assert broker.get_metadata("q/a") is None


def test_a_metadata_key_with_another_value_stops_the_change(broker: EmbeddedBroker) -> None:
    broker.set_metadata({"a": b"1"})
    for expect in ({"a": b"2"}, {"a": None}, {"b": b"1"}):
        with pytest.raises(MetadataConflict):
            broker.set_metadata({"c": b"x"}, expect)
    assert broker.list_metadata("") == {"a": b"1"}
    with pytest.raises(InvalidName):
        broker.set_metadata({"x" * 600: b"1"})


def test_a_group_remembers_offsets_by_partition(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 3)
    broker.commit("g", "t", {0: 5, 2: 7})
    broker.commit("g", "t", {2: 9})
    assert broker.committed("g", "t") == {0: 5, 2: 9}
    assert broker.committed("other", "t") == {}


def test_end_offsets_of_several_topics_are_read_at_once(broker: EmbeddedBroker) -> None:
    broker.create_topic("a", 2)
    broker.create_topic("b")
    broker.append("a", batch_of([b"v"] * 3), 1)
    assert broker.end_offsets_of(["a", "b"]) == {"a": {0: 0, 1: 3}, "b": {0: 0}}


def test_what_was_appended_is_there_after_reopening(tmp_path: Path) -> None:
    first = EmbeddedBroker(tmp_path)
    first.create_topic("t")
    first.append("t", batch_of([b"a", b"b"]))
    first.close()
    second = EmbeddedBroker(tmp_path)
    second.append("t", [LogRecord(None, b"c")])
    assert values(second, "t") == [b"a", b"b", b"c"]
    second.close()


def test_a_log_of_another_format_is_refused(broker: EmbeddedBroker) -> None:
    broker._metadata.write(lambda txn: txn.put(b"v", b"99"))
    with pytest.raises(LogError, match="format 99"):
        EmbeddedBroker(broker.directory)


def test_records_that_would_be_refused_are_named_and_the_others_can_be_staged(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path, max_record_bytes=20)
    broker.create_topic("t", cleanup_policy="compact")
    rows = batch_of([b"v", bytes(30), b"v", bytes(19)], [b"k", b"k", None, b"k"])
    assert broker.unfit("t", rows) == {
        1: "a record of 31 bytes is over the limit of 20",
        2: 'topic "t" is compacted and rejects records without a key',
    }
    broker.publish([broker.stage(tmp_path, "t", 0, rows.take([0, 3]))], {})
    broker.append("t", rows.take([0, 3]))
    assert len(read_all(broker, "t")) == 4
    assert broker.unfit("not there yet", rows.take([0, 2])) == {}
    broker.close()

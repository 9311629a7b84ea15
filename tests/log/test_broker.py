"""What every broker promises, on each of them."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from log.records import batch_of, read_all, read_range, values
from potok.errors import LogError
from potok.log.broker import READ_SCHEMA, AppendResult, Broker, PublishedBatch
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import (
    BrokerClosed,
    InvalidName,
    KeylessRecord,
    MetadataConflict,
    OffsetOutOfRange,
    RecordTooLarge,
    TopicExists,
    TopicNotFound,
)
from potok.log.open import open_broker
from potok.log.partitioner import partition_of
from potok.records.log_record import LogRecord
from potok.records.position import Position

LARGE = 4000


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    if request.param == "embedded":
        opened: Broker = EmbeddedBroker(tmp_path / "data")
    else:
        opened = open_broker(f"{request.getfixturevalue('kafka').url}?home={tmp_path / 'data'}")
    yield opened
    if request.param == "kafka":
        again = pickle.loads(pickle.dumps(opened))
        for topic in set(again.topics()) - {"potok-fences"}:
            again.delete_topic(topic)
        again.close()
    opened.close()


def test_topics_are_created_listed_described_and_deleted(log: Broker) -> None:
    log.create_topic("orders", 2, segment_bytes=2000, retention_ms=5000, retention_bytes=7000)
    log.create_topic("Clicks.v1_a-b")
    log.append("orders", batch_of([b"v"] * 10), 1)
    described = log.describe_topic("orders")
    config = described.config
    assert (config.segment_bytes, config.retention_ms, config.retention_bytes) == (2000, 5000, 7000)
    assert [(p.partition, p.start_offset, p.end_offset) for p in described.partitions] == [(0, 0, 0), (1, 0, 10)]
    assert described.records == 10
    assert log.describe_topic("Clicks.v1_a-b").config.retention_ms is None
    assert [topic for topic in log.topics() if topic != "potok-fences"] == ["Clicks.v1_a-b", "orders"]
    log.delete_topic("orders")
    assert "orders" not in log.topics()
    assert not log.has_topic("orders")


def test_a_topic_created_again_is_empty_and_has_another_id(log: Broker) -> None:
    log.create_topic("again", 3)
    log.append("again", [LogRecord(b"k", b"v")] * 5, 0)
    before = log.describe_topic("again").topic_id
    log.delete_topic("again")
    log.create_topic("again", 2)
    assert log.describe_topic("again").topic_id != before
    assert log.end_offsets("again") == {0: 0, 1: 0}
    log.append("again", [LogRecord(b"k", b"w")], 0)
    assert values(log, "again") == [b"w"]


def test_creating_a_topic_twice_is_an_error_unless_allowed(log: Broker) -> None:
    log.create_topic("t", 3)
    with pytest.raises(TopicExists, match='topic "t" exists already'):
        log.create_topic("t")
    log.create_topic("t", exist_ok=True)
    assert log.partitions("t") == 3


@pytest.mark.parametrize("name", ["", ".", "a/b", "x" * 250, "заказы"])
def test_a_name_that_is_not_a_topic_is_refused(log: Broker, name: str) -> None:
    with pytest.raises(InvalidName):
        log.create_topic(name)
    assert not log.has_topic(name)


def test_a_topic_needs_a_partition(log: Broker) -> None:
    with pytest.raises(LogError, match="0 partitions"):
        log.create_topic("t", 0)


def test_what_is_not_there_is_named(log: Broker, tmp_path: Path) -> None:
    log.create_topic("t", 2)
    for attempt in (
        lambda: log.append("no", [LogRecord(b"k", b"v")]),
        lambda: log.read("no", 0, 0, 0),
        lambda: log.end_offsets_of(["t", "no"]),
        lambda: log.delete_topic("no"),
        lambda: log.describe_topic("no"),
        lambda: log.partitions("no"),
        lambda: log.publish([log.stage(tmp_path, "no", 0, batch_of([b"v"]))], {}),
        lambda: log.append_staged([log.stage(tmp_path, "no", 0, batch_of([b"v"]))]),
    ):
        with pytest.raises(TopicNotFound, match='topic "no" does not exist'):
            attempt()
    with pytest.raises(TopicNotFound, match="its partitions are 0 to 1"):
        log.append("t", [LogRecord(b"k", b"v")], partition=2)


def test_records_come_back_as_they_were_appended(log: Broker) -> None:
    log.create_topic("t")
    sent = [
        LogRecord(b"k", b"v", 1_700_000_000_000),
        LogRecord(None, b"", 5, (("a", b"1"), ("a", b""))),
        LogRecord(b"", None, 7),
    ]
    for records in ([sent[0]], sent, sent * 5):
        assert sum(result.count for result in log.append("t", records)) == len(records)
    found = read_all(log, "t")
    expected = [sent[0], *sent, *sent * 5]
    assert [(r.key, r.value, r.timestamp_ms, r.headers) for r in found] == [
        (r.key, r.value, r.timestamp_ms, r.headers) for r in expected
    ]
    assert [r.offset for r in found] == list(range(19))


def test_a_record_without_a_time_gets_the_time_of_its_append(log: Broker) -> None:
    log.create_topic("t")
    log.append("t", [LogRecord(b"k", b"v")])
    log.append("t", pa.record_batch({"value": ["a", "b"], "timestamp": pa.array([None, 5], pa.int64())}))
    first, second, third = read_all(log, "t")
    assert third.timestamp_ms == 5
    assert min(first.timestamp_ms, second.timestamp_ms) > 1_600_000_000_000
    assert first.ingested_ms > 1_600_000_000_000


def test_a_batch_may_bring_other_types_and_columns(log: Broker) -> None:
    log.create_topic("t")
    columns = {
        "offset": pa.array([9] * 6, pa.int64()),
        "value": pa.array(["v"] * 6, pa.large_string()),
        "key": pa.array(["k"] * 6),
        "timestamp": pa.array([5] * 6, pa.timestamp("s", "UTC")),
    }
    log.append("t", pa.record_batch(columns))
    (batch,) = log.read("t", 0, 0, 6)
    assert batch.schema == READ_SCHEMA
    assert batch.column("timestamp").to_pylist() == [5000] * 6
    assert batch.column("headers").null_count == 6
    assert batch.column("offset").to_pylist() == list(range(6))
    with pytest.raises(LogError, match="needs the column value"):
        log.append("t", pa.record_batch({"key": pa.array([b"k"])}))


def test_an_empty_batch_changes_nothing(log: Broker) -> None:
    log.create_topic("t", 2)
    assert log.append("t", []) == []
    assert log.append("t", batch_of([]), 1) == []
    assert log.end_offsets("t") == {0: 0, 1: 0}


def test_records_go_to_the_partition_of_their_key(log: Broker) -> None:
    log.create_topic("t", 4)
    keys = [b"user_%d" % n for n in range(100)]
    results = log.append("t", batch_of(keys, keys))
    log.append("t", [LogRecord(b"user_7", b"again")])
    for partition in range(4):
        expected = [key for key in keys if partition_of(key, 4) == partition]
        assert AppendResult(partition, 0, len(expected)) in results
        if partition == partition_of(b"user_7", 4):
            expected.append(b"again")
        assert values(log, "t", partition) == expected


def test_records_without_a_key_are_spread(log: Broker) -> None:
    log.create_topic("t", 3)
    for _ in range(6):
        log.append("t", [LogRecord(None, b"v")])
    assert log.end_offsets("t") == {0: 2, 1: 2, 2: 2}


def test_a_record_over_the_limit_is_refused_with_all_that_came_with_it(log: Broker, tmp_path: Path) -> None:
    log.create_topic("t")
    too_large = bytes(log.max_record_bytes + 1)
    for attempt in (
        lambda: log.append("t", [LogRecord(b"k", too_large)]),
        lambda: log.append("t", batch_of([b"small", too_large])),
        lambda: log.stage(tmp_path, "t", 0, batch_of([too_large])),
    ):
        with pytest.raises(RecordTooLarge):
            attempt()
    assert log.end_offsets("t") == {0: 0}


def test_a_compacted_topic_takes_no_record_without_a_key(log: Broker) -> None:
    log.create_topic("t", cleanup_policy="compact")
    assert log.describe_topic("t").config.cleanup_policy == "compact"
    with pytest.raises(KeylessRecord, match='topic "t" is compacted'):
        log.append("t", [LogRecord(None, b"v")])
    log.append("t", [LogRecord(b"k", b"v")])
    assert values(log, "t") == [b"v"]


def test_any_range_reads_what_was_appended(log: Broker) -> None:
    log.create_topic("t")
    for n in range(0, 60, 6):
        log.append("t", [LogRecord(b"k", b"%d" % m, m + 1) for m in range(n, n + 6)])
    for start, end in ((0, 60), (0, 1), (59, 60), (7, 23), (23, 7 + 23), (30, 30)):
        found = read_range(log, "t", 0, start, end)
        assert [(r.offset, r.value) for r in found] == [(n, b"%d" % n) for n in range(start, end)]


def test_a_range_that_is_not_there_is_an_error(log: Broker) -> None:
    log.create_topic("t")
    log.append("t", batch_of([b"v"] * 3))
    assert list(log.read("t", 0, 3, 3)) == []
    for start, end in ((0, 4), (2, 1), (-1, 2), (5, 6)):
        with pytest.raises(OffsetOutOfRange, match="it holds offsets 0 to 3"):
            list(log.read("t", 0, start, end))
    assert values(log, "t") == [b"v"] * 3


def test_a_long_range_comes_in_batches_of_bounded_length(log: Broker) -> None:
    log.create_topic("t")
    log.append("t", batch_of([b"%d" % n for n in range(70_000)]))
    batches = list(log.read("t", 0, 0, 70_000))
    assert [len(batch) for batch in batches] == [65_536, 4_464]
    assert [batch.column("value")[0].as_py() for batch in batches] == [b"0", b"65536"]


def test_a_reader_may_stop_in_the_middle(log: Broker) -> None:
    log.create_topic("t")
    log.append("t", batch_of([b"%d" % n for n in range(100)]))
    batches = log.read("t", 0, 10, 90)
    next(batches)
    del batches
    assert values(log, "t")[10:12] == [b"10", b"11"]


def test_the_first_record_at_or_after_a_time_is_found(log: Broker) -> None:
    log.create_topic("t", 2)
    for at in (5, 100, 3, 50, 200, 1):
        log.append("t", batch_of([b"x"] * 3, at=at), 0)
    assert [log.offset_at("t", 0, at) for at in (-7, 0, 5, 6, 101, 201)] == [0, 0, 0, 3, 12, 18]
    assert log.offset_at("t", 1, 5) == 0


def test_end_offsets_of_several_topics_are_read_at_once(log: Broker) -> None:
    log.create_topic("a", 2)
    log.create_topic("b")
    log.append("a", batch_of([b"v"] * 3), 1)
    assert log.end_offsets_of(["a", "b"]) == {"a": {0: 0, 1: 3}, "b": {0: 0}}
    assert log.start_offsets("a") == {0: 0, 1: 0}
    assert log.earliest_offsets("a") == {0: 0, 1: 0}
    assert log.end_offsets_of([]) == {}


def test_a_group_remembers_offsets_by_partition(log: Broker, tmp_path: Path) -> None:
    group = f"group-{tmp_path.name}"
    log.create_topic("t", 3)
    log.commit(group, "t", {0: 5, 2: 7})
    log.commit(group, "t", {2: 9})
    assert log.committed(group, "t") == {0: 5, 2: 9}
    assert log.committed("nobody", "t") == {}
    with pytest.raises(InvalidName):
        log.commit("", "t", {0: 1})


def test_metadata_keys_are_set_and_deleted_together(log: Broker) -> None:
    log.set_metadata({"q/a": b"1", "q/b": b"", "r": b"3"})
    assert log.list_metadata("q/") == {"q/a": b"1", "q/b": b""}
    log.set_metadata({"q/a": None, "q/b": b"2"}, expect={"q/a": b"1", "q/c": None})
    assert log.list_metadata("") == {"q/b": b"2", "r": b"3"}
    with pytest.raises(MetadataConflict):
        log.set_metadata({"c": b"x"}, {"r": b"4"})
    assert log.get_metadata("c") is None


def test_staged_output_and_metadata_keys_become_visible_together(log: Broker, tmp_path: Path) -> None:
    log.create_topic("a", 2)
    log.create_topic("b")
    staging = tmp_path / "staging"
    staged = [
        log.stage(staging, "b", 0, batch_of([b"first"])),
        log.stage(staging, "a", 1, batch_of([b"x" * 100] * LARGE)),
        log.stage(staging, "b", 0, batch_of([b"second"] * 20)),
        log.stage(staging, "a", 0, batch_of([])),
    ]
    assert log.end_offsets_of(["a", "b"]) == {"a": {0: 0, 1: 0}, "b": {0: 0}}
    assert len(list(staging.iterdir())) == 1
    batch = PublishedBatch(f"q-{tmp_path.name}", 1, {"b": {0: 0}})
    log.publish(pickle.loads(pickle.dumps(staged)), {"query": b"1"}, {"query": None}, batch)
    assert values(log, "b") == [b"first", *[b"second"] * 20]
    assert values(log, "a", 1) == [b"x" * 100] * LARGE
    assert values(log, "a", 0) == []
    assert log.get_metadata("query") == b"1"
    assert list(staging.iterdir()) == []


def test_nothing_is_visible_if_a_metadata_key_has_another_value(log: Broker, tmp_path: Path) -> None:
    log.create_topic("t")
    staged = log.stage(tmp_path, "t", 0, batch_of([b"v"]))
    log.publish([staged], {"batch": b"1"}, expect={"batch": None})
    with pytest.raises(MetadataConflict):
        log.publish([staged], {"batch": b"1"}, expect={"batch": None})
    assert values(log, "t") == [b"v"]
    log.publish([], {"batch": None}, expect={"batch": b"1"})
    assert log.get_metadata("batch") is None


def test_metadata_may_depend_on_the_position_after_the_output(log: Broker, tmp_path: Path) -> None:
    log.create_topic("t", 2)
    log.append("t", batch_of([b"v"] * 3), 1)
    staged = [log.stage(tmp_path, "t", part, batch_of([b"v"] * 2)) for part in (1, 0, 1)]
    batch = PublishedBatch(f"q-{tmp_path.name}", 1, {})
    log.publish(staged, {"a": b"1"}, {}, batch, lambda after: {"b": str(after).encode()})
    assert log.get_metadata_of(["a", "b"]) == (b"1", b"t:0:2,t:1:7")


def test_nothing_is_visible_where_one_topic_is_missing(log: Broker, tmp_path: Path) -> None:
    log.create_topic("t")
    staged = [log.stage(tmp_path, name, 0, batch_of([b"v"])) for name in ("t", "gone")]
    with pytest.raises(TopicNotFound):
        log.publish(staged, {"batch": b"1"})
    assert log.end_offsets("t") == {0: 0}
    assert log.get_metadata("batch") is None


def test_staged_output_can_be_appended_in_its_order_without_metadata_keys(log: Broker, tmp_path: Path) -> None:
    log.create_topic("t", 2)
    parts = [(0, b"a", 3), (1, b"b", LARGE), (0, b"c", 2)]
    staged = [log.stage(tmp_path / "s", "t", part, batch_of([value * 100] * count)) for part, value, count in parts]
    assert log.append_staged(staged) == Position({"t": {0: 5, 1: LARGE}})
    assert values(log, "t", 0) == [b"a" * 100] * 3 + [b"c" * 100] * 2
    assert values(log, "t", 1) == [b"b" * 100] * LARGE
    assert list((tmp_path / "s").iterdir()) == []


def test_threads_append_at_once_and_nothing_is_lost(log: Broker) -> None:
    log.create_topic("t", 2)

    def add(name: bytes) -> None:
        for n in range(20):
            log.append("t", [LogRecord(name, b"%d" % n)])

    threads = [threading.Thread(target=add, args=(b"thread-%d" % n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read_all(log, "t", 0) + read_all(log, "t", 1)
    for n in range(4):
        mine = [record.value for record in found if record.key == b"thread-%d" % n]
        assert mine == [b"%d" % at for at in range(20)]


def _work_in_child(log: Broker) -> None:
    log.append("t", [LogRecord(b"k", b"child")])
    assert values(log, "t") == [b"parent", b"child"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_opens_the_log_again(log: Broker, method: str) -> None:
    log.create_topic("t")
    log.append("t", [LogRecord(b"k", b"parent")])
    assert values(log, "t") == [b"parent"]
    child = multiprocessing.get_context(method).Process(target=_work_in_child, args=(log,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    log.append("t", [LogRecord(b"k", b"again")])
    assert values(log, "t") == [b"parent", b"child", b"again"]


def test_a_closed_log_raises_an_error_and_can_be_reopened(log: Broker) -> None:
    log.create_topic("t")
    log.close()
    log.close()
    with pytest.raises(BrokerClosed):
        log.topics()
    again = pickle.loads(pickle.dumps(log))
    assert again is not log
    assert again.has_topic("t")


def test_retention_is_asked_for_at_any_time(log: Broker) -> None:
    log.create_topic("t")
    log.append("t", batch_of([b"v"]))
    log.set_protected("somebody", {("t", 0): 0})
    assert log.enforce_retention("t") == {}
    assert values(log, "t") == [b"v"]

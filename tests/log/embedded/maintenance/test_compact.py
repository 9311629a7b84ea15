"""Compaction: the last record of each key stays, under its own offset, and nobody who reads is disturbed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log.records import batch_of, read_all, read_range
from potok.log.clients.consumer import Consumer
from potok.log.embedded import embedded_broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.embedded.maintenance import compact, rewrite
from potok.log.errors import CorruptSegment, KeylessRecord, NotCompacted
from potok.log.maintenance import InvalidTopicConfig
from potok.records.log_record import LogRecord

DAY = 86_400_000

KEYED = st.builds(
    LogRecord,
    key=st.sampled_from([b"", b"a", b"b", b"cc", b"d" * 300]),
    value=st.none() | st.binary(max_size=60),
    timestamp_ms=st.integers(1, 100),
    headers=st.just(()) | st.tuples(st.tuples(st.text(max_size=3), st.binary(max_size=3))),
)


def later(monkeypatch: pytest.MonkeyPatch, ms: int) -> None:
    now = embedded_broker.now_ms()
    monkeypatch.setattr(embedded_broker, "now_ms", lambda: now + ms)


def put(broker: EmbeddedBroker, *pairs: tuple[bytes, bytes | None]) -> None:
    """One segment for each record, if the topic has segments of one byte."""
    for key, value in pairs:
        broker.append("t", [LogRecord(key, value, 1)])


def held(broker: EmbeddedBroker) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in read_all(broker, "t")]


@settings(max_examples=40, deadline=None)
@given(
    rounds=st.lists(
        st.lists(st.lists(KEYED, min_size=1, max_size=2) | st.lists(KEYED, min_size=1, max_size=9), max_size=8),
        min_size=1,
        max_size=4,
    ),
    segment_bytes=st.sampled_from([1, 400, 3000]),
    map_keys=st.sampled_from([1, 1 << 30]),
    frame_bytes=st.sampled_from([1, 4 << 20]),
    data=st.data(),
)
def test_exactly_the_last_record_of_each_key_stays(
    tmp_path_factory: pytest.TempPathFactory,
    rounds: list[list[list[LogRecord]]],
    segment_bytes: int,
    map_keys: int,
    frame_bytes: int,
    data: st.DataObject,
) -> None:
    broker = EmbeddedBroker(tmp_path_factory.mktemp("log"))
    broker.create_topic("t", segment_bytes=segment_bytes, cleanup_policy="compact")
    written: list[LogRecord] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compact.Compactor.run, "__defaults__", (map_keys,))
        patched.setattr(rewrite, "FRAME_BYTES", frame_bytes)
        for appends in rounds:
            for records in appends:
                broker.append("t", records)
                written += records
            broker.compact_topic("t", seal=data.draw(st.booleans()))
        broker.compact_topic("t", seal=True)
    last = {record.key: offset for offset, record in enumerate(written)}
    expected = [(offset, written[offset]) for offset in sorted(last.values())]
    start = data.draw(st.integers(0, len(written)))
    end = data.draw(st.integers(start, len(written)))
    found = read_range(broker, "t", 0, start, end)
    assert [(r.offset, r.key, r.value, r.timestamp_ms, r.headers) for r in found] == [
        (offset, r.key, r.value, r.timestamp_ms, r.headers) for offset, r in expected if start <= offset < end
    ]
    at = data.draw(st.integers(0, 101))
    late = [offset for offset, record in expected if record.timestamp_ms >= at]
    assert broker.offset_at("t", 0, at) == (late[0] if late else len(written))
    (part,) = broker.describe_topic("t").partitions
    assert (part.start_offset, part.end_offset, part.records) == (0, len(written), len(expected))
    assert part.bytes == sum(path.stat().st_size for path in broker.directory.rglob("*.segment"))
    assert part.dirty_bytes == 0
    broker.close()


def test_the_active_segment_is_left_alone_unless_it_is_sealed(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", cleanup_policy="compact")
    put(broker, (b"a", b"1"), (b"a", b"2"))
    (report,) = broker.compact_topic("t")
    assert (report.records_before, report.records_after) == (0, 0)
    assert len(held(broker)) == 2
    (report,) = broker.compact_topic("t", seal=True)
    assert (report.records_before, report.records_after, report.removed) == (2, 1, 1)
    assert report.bytes_after == broker.describe_topic("t").partitions[0].bytes
    assert held(broker) == [(1, b"a", b"2")]
    put(broker, (b"a", b"3"))
    assert held(broker) == [(1, b"a", b"2"), (2, b"a", b"3")]


def test_a_record_keeps_its_time_of_ingestion_and_its_headers(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    broker.append("t", [LogRecord(b"a", b"1", 5, (("h", b"x"),))])
    put(broker, (b"b", b"1"), (b"b", b"2"))
    before = {record.offset: record for record in read_all(broker, "t")}
    broker.compact_topic("t", seal=True)
    after = {record.offset: record for record in read_all(broker, "t")}
    assert after == {0: before[0], 2: before[2]}


def test_small_segments_become_one(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=2000, cleanup_policy="compact")
    for n in range(300):
        put(broker, (b"k%d" % (n % 3), b"x" * 100))
    assert broker.describe_topic("t").partitions[0].segments > 10
    broker.compact_topic("t")
    broker.compact_topic("t", seal=True)
    assert broker.describe_topic("t").partitions[0].segments == 1
    assert [offset for offset, _, _ in held(broker)] == [297, 298, 299]


def test_what_is_compacted_already_is_not_written_again(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=2000, cleanup_policy="compact")
    broker.append("t", batch_of([b"x" * 1000] * 4, [b"a", b"b", b"c", b"a"]))
    broker.compact_topic("t", seal=True)
    (path,) = broker.directory.rglob("*.segment")
    broker.append("t", batch_of([b"x" * 1000] * 4, [b"d", b"e", b"f", b"d"]))
    broker.compact_topic("t", seal=True)
    assert path.exists()
    assert [offset for offset, _, _ in held(broker)] == [1, 2, 3, 5, 6, 7]


def test_a_partition_whose_records_are_all_gone_can_still_be_read(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact", delete_retention_ms=0)
    put(broker, (b"a", b"1"), (b"a", None))
    broker.compact_topic("t", seal=True)
    assert list(broker.directory.rglob("*.segment")) == []
    assert held(broker) == []
    assert (broker.start_offsets("t"), broker.end_offsets("t")) == ({0: 0}, {0: 2})
    assert broker.offset_at("t", 0, 0) == 2
    put(broker, (b"b", b"1"))
    assert held(broker) == [(2, b"b", b"1")]
    assert [record.value for record in read_range(broker, "t", 0, 1, 3)] == [b"1"]


def test_a_tombstone_stays_for_a_while_after_it_was_first_seen(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact", delete_retention_ms=DAY)
    put(broker, (b"a", b"1"), (b"a", None), (b"b", b"1"))
    later(monkeypatch, 10 * DAY)  # an old tombstone, which compaction meets only now
    broker.compact_topic("t", seal=True)
    assert held(broker) == [(1, b"a", None), (2, b"b", b"1")]
    later(monkeypatch, DAY - 10_000)
    put(broker, (b"c", None), (b"b", b"2"))
    broker.compact_topic("t", seal=True)
    assert held(broker) == [(1, b"a", None), (3, b"c", None), (4, b"b", b"2")]
    later(monkeypatch, 10_001)
    broker.compact_topic("t")
    assert held(broker) == [(3, b"c", None), (4, b"b", b"2")]
    later(monkeypatch, DAY)
    broker.compact_topic("t")
    assert held(broker) == [(4, b"b", b"2")]


def test_young_records_are_not_compacted(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact", min_compaction_lag_ms=60_000)
    put(broker, (b"a", b"1"), (b"a", b"2"), (b"a", b"3"))
    broker.compact_topic("t")
    assert len(held(broker)) == 3
    later(monkeypatch, 61_000)
    broker.compact_topic("t")
    assert held(broker) == [(1, b"a", b"2"), (2, b"a", b"3")]


def test_what_a_query_may_read_again_is_not_compacted(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    put(broker, *[(b"a", b"%d" % n) for n in range(6)])
    broker.set_protected("query", {("t", 0): 2})
    broker.set_protected("other", {("t", 0): 4, ("elsewhere", 0): 0})
    broker.compact_topic("t")
    assert [offset for offset, _, _ in held(broker)] == [1, 2, 3, 4, 5]
    broker.set_protected("query", {})
    broker.compact_topic("t")
    assert [offset for offset, _, _ in held(broker)] == [3, 4, 5]
    assert broker.describe_topic("t").dirty_ratio > 0


def test_a_query_that_comes_meanwhile_is_not_disturbed(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    for n in range(4):
        broker.append("t", batch_of([b"%d" % n] * 2, [b"a", b"k%d" % n]))
    monkeypatch.setattr(
        rewrite, "failpoint", lambda name: name.endswith("synced") and broker.set_protected("query", {("t", 0): 0})
    )
    broker.compact_topic("t")
    assert len(held(broker)) == 8
    assert len(list(broker.directory.rglob("*.segment"))) == 4
    assert list(broker.directory.rglob("*.compacting")) == []


def test_retention_that_comes_meanwhile_wins(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact,delete", retention_ms=60_000)
    put(broker, *[(b"a", b"%d" % n) for n in range(4)])

    def expire(name: str) -> None:
        if name.endswith("synced"):
            later(monkeypatch, 61_000)
            assert broker.enforce_retention() == {("t", 0): 3}

    monkeypatch.setattr(rewrite, "failpoint", expire)
    broker.compact_topic("t")
    assert held(broker) == [(3, b"a", b"3")]
    assert len(list(broker.directory.iterdir())) == 1
    assert [path.name for path in broker.directory.rglob("*.segment")] == [f"{3:020d}.segment"]


def test_a_reader_whose_segment_is_deleted_continues_in_the_next_one(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    keys = [b"a", b"b", b"a", b"c", b"b", b"d"]
    for n, key in enumerate(keys):
        broker.append("t", batch_of([b"%d" % n] * 9_000, [key] * 9_000))
    batches = broker.read("t", 0, 0, 54_000)
    first = next(batches)
    broker.compact_topic("t", seal=True)
    offsets = [*first.column("offset").to_pylist()]
    for batch in batches:
        offsets += batch.column("offset").to_pylist()
    assert offsets == sorted(set(offsets))
    assert {26_999, 35_999, 44_999, 53_999} <= set(offsets)
    # What was planned before is read to the end of the file at hand; after that, what is left.
    assert offsets[:9_000] == [*range(9_000)]
    assert len(offsets) < 54_000


def test_a_consumer_passes_gaps_of_any_length(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    broker.append("t", batch_of([b"x"] * 500, [b"a"] * 500))
    put(broker, (b"b", b"1"))
    broker.append("t", batch_of([b"y"] * 500, [b"a"] * 500))
    broker.compact_topic("t", seal=True)
    put(broker, (b"b", b"2"))
    consumer = Consumer(broker, "t", start="earliest", until_end=True, batch_records=10)
    assert [(record.offset, record.key) for record in consumer] == [(500, b"b"), (1000, b"a"), (1001, b"b")]
    polled = Consumer(broker, "t", start="earliest", batch_records=10)
    assert [record.offset for _ in range(3) for record in polled.poll(timeout=30, max_records=1)] == [500, 1000, 1001]


def test_a_damaged_segment_stops_compaction_and_loses_nothing(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    put(broker, (b"a", b"damage me"), (b"a", b"2"), (b"a", b"3"))
    path = min(broker.directory.rglob("*.segment"))
    path.write_bytes(path.read_bytes().replace(b"damage me", b"damaged !"))
    with pytest.raises(CorruptSegment, match="checksum"):
        broker.compact_topic("t")
    assert len(list(broker.directory.rglob("*.segment"))) == 3
    assert list(broker.directory.rglob("*.compacting")) == []
    path.unlink()
    with pytest.raises(CorruptSegment, match="missing"):
        broker.compact_topic("t")


@pytest.mark.parametrize("byte", [0, 4, 8, 20, 52, 90])
def test_a_damaged_compacted_segment_is_noticed(broker: EmbeddedBroker, byte: int) -> None:
    broker.create_topic("t", cleanup_policy="compact")
    put(broker, (b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    broker.compact_topic("t", seal=True)
    (path,) = broker.directory.rglob("*.segment")
    content = bytearray(path.read_bytes())
    content[byte] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(CorruptSegment, match="at byte 0"):
        read_all(broker, "t")


@pytest.mark.parametrize("count", [1, 7])
def test_a_compacted_topic_takes_no_record_without_a_key(broker: EmbeddedBroker, tmp_path: Path, count: int) -> None:
    broker.create_topic("t", 2, cleanup_policy="compact")
    records = [LogRecord(b"a", b"v"), LogRecord(None, b"v")][-count:]
    with pytest.raises(KeylessRecord, match="give every record a key"):
        broker.append("t", records)
    with pytest.raises(KeylessRecord):
        broker.append("t", batch_of([b"v"] * count), 0)
    with pytest.raises(KeylessRecord):
        broker.stage(tmp_path, "t", 0, batch_of([b"v"] * count))
    assert broker.end_offsets("t") == {0: 0, 1: 0}


def test_a_topic_that_is_not_compacted_refuses_compaction(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with pytest.raises(NotCompacted, match="--cleanup-policy compact"):
        broker.compact_topic("t")
    for policy in ("shrink", "", "delete,compact,delete,x"):
        with pytest.raises(InvalidTopicConfig, match=r"compact,delete"):
            broker.create_topic("u", cleanup_policy=policy)
    with pytest.raises(InvalidTopicConfig, match="negative"):
        broker.create_topic("u", cleanup_policy="compact", delete_retention_ms=-1)
    broker.create_topic("u", cleanup_policy="delete, compact")
    assert broker.describe_topic("u").config.cleanup_policy == "compact,delete"

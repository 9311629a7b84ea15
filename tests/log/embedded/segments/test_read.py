from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log.records import batch_of, read_all, read_range, values
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.embedded.segments import read
from potok.log.errors import CorruptSegment, OffsetOutOfRange, TopicNotFound
from potok.records.log_record import LogRecord

RECORDS = st.builds(
    LogRecord,
    key=st.none() | st.binary(max_size=8),
    value=st.none() | st.binary(max_size=300),
    timestamp_ms=st.integers(1, 100),
    headers=st.just(()) | st.tuples(st.tuples(st.text(max_size=3), st.binary(max_size=3))),
)


@settings(max_examples=20, deadline=None)
@given(
    appends=st.lists(st.lists(RECORDS, min_size=1, max_size=12), max_size=10),
    segment_bytes=st.sampled_from([1, 500, 3000, 1 << 30]),
    map_from=st.sampled_from([1, 1 << 30]),
    data=st.data(),
)
def test_any_range_reads_what_was_appended(
    tmp_path_factory: pytest.TempPathFactory,
    appends: list[list[LogRecord]],
    segment_bytes: int,
    map_from: int,
    data: st.DataObject,
) -> None:
    broker = EmbeddedBroker(tmp_path_factory.mktemp("log"))
    broker.create_topic("t", segment_bytes=segment_bytes)
    for records in appends:
        broker.append("t", records)
    expected = [record for records in appends for record in records]
    start = data.draw(st.integers(0, len(expected)))
    end = data.draw(st.integers(start, len(expected)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(read, "_MAP_FROM", map_from)
        found = read_range(broker, "t", 0, start, end)
    assert [r.offset for r in found] == list(range(start, end))
    assert [(r.key, r.value, r.timestamp_ms, r.headers) for r in found] == [
        (r.key, r.value, r.timestamp_ms, r.headers) for r in expected[start:end]
    ]
    at = data.draw(st.integers(0, 101))
    late = [n for n, record in enumerate(expected) if record.timestamp_ms >= at]
    assert broker.offset_at("t", 0, at) == (late[0] if late else len(expected))
    broker.close()


def test_many_small_appends_come_back_in_few_batches(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    for n in range(150):
        broker.append("t", [LogRecord(b"k", b"%d" % n)] if n % 3 else batch_of([b"%d" % n] * 6))
    assert [len(batch) for batch in broker.read("t", 0, 0, 400)] == [400]


def test_a_large_append_comes_back_as_it_lies_in_the_file(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.append("t", batch_of([b"x" * 100] * 20_000))
    broker.append("t", [LogRecord(None, b"y")])
    broker.append("t", batch_of([b"x" * 100] * 100_000))
    before = pa.total_allocated_bytes()
    batches = list(broker.read("t", 0, 0, 120_001))
    # Positions and ingestion times are made on reading: 16 bytes a record. The values are not copied.
    assert pa.total_allocated_bytes() - before < 120_001 * 40
    assert [len(batch) for batch in batches] == [20_000, 1, 65_536, 34_464]


def test_a_range_that_is_not_there_is_an_error(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.append("t", batch_of([b"v"] * 3))
    assert list(broker.read("t", 0, 3, 3)) == []
    for start, end in ((0, 4), (2, 1), (-1, 2)):
        with pytest.raises(OffsetOutOfRange, match="it holds offsets 0 to 3"):
            broker.read("t", 0, start, end)


def the_segment(broker: EmbeddedBroker) -> Path:
    (path,) = broker.directory.rglob("*.segment")
    return path


@pytest.mark.parametrize("count", [1, 20])
def test_a_damaged_body_is_named_with_its_position(broker: EmbeddedBroker, count: int) -> None:
    broker.create_topic("t")
    broker.append("t", batch_of([b"before"]))
    position = the_segment(broker).stat().st_size
    broker.append("t", batch_of([b"damage me"] * count))
    path = the_segment(broker)
    path.write_bytes(path.read_bytes().replace(b"damage me", b"damaged !"))
    with pytest.raises(CorruptSegment, match=rf"{path} is damaged at byte {position} \(offset 1\).*\n.*backup"):
        read_all(broker, "t")
    assert [record.value for record in read_range(broker, "t", 0, 0, 1)] == [b"before"]


@pytest.mark.parametrize("byte", [0, 4, 8, 20, 52])
def test_a_damaged_header_is_noticed(broker: EmbeddedBroker, byte: int) -> None:
    broker.create_topic("t")
    broker.append("t", batch_of([b"v"] * 10))
    path = the_segment(broker)
    content = bytearray(path.read_bytes())
    content[byte] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(CorruptSegment, match="at byte 0"):
        read_all(broker, "t")


@pytest.mark.parametrize("map_from", [1, 1 << 30])
def test_a_segment_that_lost_its_end_is_noticed(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, map_from: int
) -> None:
    monkeypatch.setattr(read, "_MAP_FROM", map_from)
    broker.create_topic("t")
    broker.append("t", batch_of([b"v"] * 10))
    path = the_segment(broker)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptSegment, match="ends 1 bytes too early"):
        read_all(broker, "t")
    with pytest.raises(CorruptSegment, match="ends 1 bytes too early"):
        broker.append("t", batch_of([b"v"]))


def test_a_lost_segment_is_noticed(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.append("t", batch_of([b"v"]))
    the_segment(broker).unlink()
    with pytest.raises(CorruptSegment, match="the file is missing"):
        read_all(broker, "t")
    with pytest.raises(CorruptSegment, match="the file is missing"):
        broker.append("t", batch_of([b"v"]))


def test_reading_expired_records_raises_an_error(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, retention_bytes=0)
    broker.set_protected("reader", {("t", 0): 0})
    for n in range(3):
        broker.append("t", batch_of([b"%d" % n]))
    batches = broker.read("t", 0, 0, 3)
    broker.set_protected("reader", {})
    broker.enforce_retention("t")
    with pytest.raises(OffsetOutOfRange, match="deleted by retention"):
        list(batches)


def test_reading_a_deleted_topic_raises_an_error(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.append("t", batch_of([b"v"]))
    batches = broker.read("t", 0, 0, 1)
    broker.delete_topic("t")
    with pytest.raises(TopicNotFound):
        list(batches)


def test_bytes_behind_the_committed_end_are_neither_read_nor_kept(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    broker.append("t", batch_of([b"a"]))
    with the_segment(broker).open("ab") as file:
        file.write(b"torn tail of an append that never committed")
    assert values(broker, "t") == [b"a"]
    broker.append("t", batch_of([b"b"]))
    assert values(broker, "t") == [b"a", b"b"]
    assert the_segment(broker).stat().st_size == broker.describe_topic("t").partitions[0].bytes


def test_the_first_record_at_or_after_a_time_is_found_across_segments(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=20_000)
    for n in range(60):
        broker.append("t", batch_of([b"x" * 1000] * 5, at=100 * n + 1))
    assert broker.describe_topic("t").partitions[0].segments > 10
    assert broker.offset_at("t", 0, 0) == 0
    assert broker.offset_at("t", 0, 3001) == 150
    assert broker.offset_at("t", 0, 3002) == 155
    assert broker.offset_at("t", 0, 9999) == 300


def test_times_out_of_order_return_the_first_that_is_late_enough(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=200_000)
    for at in (5, 100, 3, 50, 200, 1):
        broker.append("t", batch_of([b"x" * 50_000] * 3, at=at))
    assert broker.offset_at("t", 0, 6) == 3
    assert broker.offset_at("t", 0, 101) == 12


def test_an_empty_partition_answers_with_its_end(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    assert broker.offset_at("t", 0, 5) == 0

"""The archive: old segments become Parquet files, and a reader does not notice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from log.records import batch_of, read_range, values
from potok.errors import LogError
from potok.log.broker import READ_SCHEMA
from potok.log.clients.consumer import Consumer
from potok.log.embedded import embedded_broker
from potok.log.embedded.catalog import Segment
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.embedded.maintenance import archive
from potok.log.errors import ArchiveDamaged, NoArchive, OffsetOutOfRange
from potok.log.maintenance import InvalidTopicConfig
from potok.records.log_record import LogRecord

RECORDS = [
    LogRecord(b"k%d" % n if n % 3 else None, b"%d" % n if n % 5 else None, n + 1, (("h", b"%d" % n),) if n % 4 else ())
    for n in range(40)
]


def fill(broker: EmbeddedBroker, count: int = 40) -> None:
    """Segments of one to six records."""
    at = 0
    while at < count:
        size = min(1 + at % 6, count - at)
        broker.append("t", RECORDS[at : at + size])
        at += size


def later(monkeypatch: pytest.MonkeyPatch, ms: int) -> None:
    now = embedded_broker.now_ms()
    monkeypatch.setattr(embedded_broker, "now_ms", lambda: now + ms)


def test_a_segment_that_retention_takes_meanwhile_is_not_archived(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", segment_bytes=1, retention_bytes=1)
    broker.set_protected("query", {("t", 0): 0})
    fill(broker, 10)
    broker.set_protected("query", {})
    write = archive.Archiver._write_parquet

    def overtaken(archiver: archive.Archiver, segment: Segment, path: Path) -> None:
        broker.enforce_retention("t")
        write(archiver, segment, path)

    monkeypatch.setattr(archive.Archiver, "_write_parquet", overtaken)
    assert broker.archive_topic("t", tmp_path / "old") == []
    assert broker.earliest_offsets("t") == broker.start_offsets("t")
    assert [path for path in (tmp_path / "old").rglob("*") if path.is_file()] == []


def test_any_range_reads_the_same_from_archive_and_log(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", segment_bytes=1)
    fill(broker)
    before = read_range(broker, "t", 0, 0, 40)
    broker.set_protected("query", {("t", 0): 25})
    files = broker.archive_topic("t", tmp_path / "old")
    moved = files[-1].end_offset
    assert 15 < moved <= 25
    assert broker.start_offsets("t") == {0: moved}
    assert broker.earliest_offsets("t") == {0: 0}
    assert broker.describe_topic("t").partitions[0].earliest_offset == 0
    assert len(list(broker.directory.rglob("*.segment"))) == broker.describe_topic("t").partitions[0].segments
    for start in range(0, 41, 3):
        for end in range(start, 41, 4):
            assert read_range(broker, "t", 0, start, end) == before[start:end]


def test_the_files_are_plain_parquet_whose_names_sort_by_offset(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", 2, segment_bytes=1)
    for partition in (1, 0):
        for n in range(12):
            broker.append("t", batch_of([b"%d" % n] * 2, at=n), partition)
    files = broker.archive_topic("t", tmp_path / "old")
    assert [(file.partition, file.base_offset, file.records) for file in files] == [
        (partition, 2 * n, 2) for partition in (0, 1) for n in range(11)
    ]
    listed = sorted(path for path in (tmp_path / "old").rglob("*") if path.is_file())
    assert listed == [Path(file.path) for file in files]
    assert all(file.size == path.stat().st_size for file, path in zip(files, listed, strict=True))
    table = ds.dataset(tmp_path / "old").to_table().sort_by([("partition", "ascending"), ("offset", "ascending")])
    assert table.schema.names == [*READ_SCHEMA.names, "partition"]
    assert table.column("value").to_pylist() == [b"%d" % n for _ in range(2) for n in range(11) for _ in range(2)]
    metadata = pq.ParquetFile(listed[0]).metadata
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_only_segments_of_some_age_are_moved(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", segment_bytes=1)
    broker.append("t", batch_of([b"old"]))
    later(monkeypatch, 10_000)
    broker.append("t", batch_of([b"active"]))
    assert broker.archive_topic("t", tmp_path, 10_001 + 1_000) == []
    assert len(broker.archive_topic("t", tmp_path, 9_000)) == 1
    assert broker.archive_topic("t", tmp_path) == []
    assert len(broker.archive_topic("t", tmp_path, seal=True)) == 1
    assert broker.start_offsets("t") == broker.end_offsets("t") == {0: 2}
    assert [record.value for record in read_range(broker, "t", 0, 0, 2)] == [b"old", b"active"]
    broker.append("t", batch_of([b"next"]))
    assert [record.value for record in read_range(broker, "t", 0, 1, 3)] == [b"active", b"next"]


def test_retention_of_a_topic_with_an_archive_moves_instead_of_deleting(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", segment_bytes=1, retention_bytes=0, archive=tmp_path / "old")
    fill(broker, 12)
    assert broker.start_offsets("t") == {0: 0}, "a commit does not wait for the archive"
    starts = broker.enforce_retention()
    assert starts == broker_starts(broker)
    assert broker.earliest_offsets("t") == {0: 0}
    assert len(read_range(broker, "t", 0, 0, 12)) == 12
    assert broker.enforce_retention() == {}


def broker_starts(broker: EmbeddedBroker) -> dict[tuple[str, int], int]:
    return {("t", part): start for part, start in broker.start_offsets("t").items()}


def test_a_gap_between_archive_and_log_is_never_passed_in_silence(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", segment_bytes=1, retention_bytes=0)
    broker.set_protected("query", {("t", 0): 0})
    for n in range(4):
        broker.append("t", batch_of([b"%d" % n]))
    broker.set_protected("query", {("t", 0): 2})
    broker.archive_topic("t", tmp_path)
    broker.set_protected("query", {})
    broker.enforce_retention()
    assert broker.earliest_offsets("t") == broker.start_offsets("t") == {0: 3}
    assert [record.value for record in read_range(broker, "t", 0, 0, 2)] == [b"0", b"1"]
    for start, end in ((0, 3), (2, 4), (1, 4)):
        with pytest.raises(OffsetOutOfRange, match="it holds offsets 3 to 4"):
            broker.read("t", 0, start, end)


def test_a_reader_whose_segment_is_archived_continues_in_the_archive(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", segment_bytes=1)
    for n in range(4):
        broker.append("t", batch_of([b"%d" % n] * 9_000))
    batches = broker.read("t", 0, 0, 36_000)
    found = next(batches).column("value").to_pylist()
    broker.archive_topic("t", tmp_path)
    for batch in batches:
        found += batch.column("value").to_pylist()
    assert found == [b"%d" % n for n in range(4) for _ in range(9_000)]


def test_an_archive_inside_the_log_moves_with_it(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", segment_bytes=1, archive=broker.directory / "old")
    fill(broker, 12)
    broker.archive_topic("t")
    broker.close()
    shutil.move(broker.directory, tmp_path / "elsewhere")
    moved = EmbeddedBroker(tmp_path / "elsewhere")
    assert len(read_range(moved, "t", 0, 0, 12)) == 12
    moved.close()


def test_a_file_that_is_missing_or_damaged_is_named(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", segment_bytes=1)
    broker.append("t", batch_of([b"first"]))
    broker.append("t", batch_of([b"damage me %d" % n for n in range(200)]))
    broker.append("t", batch_of([b"last"]))
    _, file = broker.archive_topic("t", tmp_path)
    path = Path(file.path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ArchiveDamaged, match=f"{path}"):
        read_range(broker, "t", 0, 0, 202)
    path.unlink()
    with pytest.raises(ArchiveDamaged, match="the file is missing"):
        read_range(broker, "t", 0, 0, 202)
    assert [record.value for record in read_range(broker, "t", 0, 0, 1)] == [b"first"]
    assert values(broker, "t") == [b"last"]


def test_any_changed_byte_of_a_file_is_found(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", segment_bytes=1)
    broker.append("t", batch_of([b"value %d" % n for n in range(50)]))
    broker.append("t", batch_of([b"last"]))
    (file,) = broker.archive_topic("t", tmp_path)
    path = Path(file.path)
    content = path.read_bytes()
    for position in range(0, len(content), 3):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        with pytest.raises(ArchiveDamaged, match=f"{path}"):
            read_range(broker, "t", 0, 0, 51)
    path.write_bytes(content + b"x")
    with pytest.raises(ArchiveDamaged, match="bytes, not"):
        read_range(broker, "t", 0, 0, 51)


def test_only_the_part_of_a_file_that_is_asked_for_is_read(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t")
    for n in range(3):
        broker.append("t", batch_of([b"%d" % n] * 20_000))
    broker.archive_topic("t", tmp_path, seal=True)
    (path,) = tmp_path.rglob("*.parquet")
    file = pq.ParquetFile(path)
    assert file.num_row_groups == 3
    first = file.metadata.row_group(0).column(1).data_page_offset
    content = bytearray(path.read_bytes())
    content[first + 40] ^= 0xFF
    path.write_bytes(content)
    assert [record.value for record in read_range(broker, "t", 0, 20_000, 20_002)] == [b"1", b"1"]
    with pytest.raises(ArchiveDamaged):
        read_range(broker, "t", 0, 19_999, 20_001)


def test_a_topic_without_an_archive_asks_where_to(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t")
    with pytest.raises(NoArchive, match="--to DIR"):
        broker.archive_topic("t")
    with pytest.raises(InvalidTopicConfig, match="is not a directory"):
        broker.create_topic("u", archive="s3://bucket/old")
    (tmp_path / "file").write_text("")
    broker.append("t", batch_of([b"v"]))
    with pytest.raises(LogError, match="cannot archive to"):
        broker.archive_topic("t", tmp_path / "file", seal=True)
    assert values(broker, "t") == [b"v"]


def test_a_query_that_comes_meanwhile_keeps_its_segments(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", segment_bytes=1)
    fill(broker, 12)
    monkeypatch.setattr(
        archive, "failpoint", lambda name: name.endswith("renamed") and broker.set_protected("query", {("t", 0): 1})
    )
    assert [file.end_offset for file in broker.archive_topic("t", tmp_path)] == [1]
    assert len(list(tmp_path.rglob("*.parquet"))) == 1
    assert broker.start_offsets("t") == {0: 1}


def test_tombstones_stay_as_long_as_the_archive_may_hold_what_they_delete(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact", delete_retention_ms=0)
    broker.append("t", [LogRecord(b"a", b"1")])
    broker.archive_topic("t", tmp_path, seal=True)
    broker.append("t", [LogRecord(b"a", None)])
    broker.append("t", [LogRecord(b"b", b"1")])
    broker.compact_topic("t", seal=True)
    assert [(record.key, record.value) for record in read_range(broker, "t", 0, 0, 3)] == [
        (b"a", b"1"),
        (b"a", None),
        (b"b", b"1"),
    ]


def test_what_compaction_left_is_archived_with_its_offsets(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", cleanup_policy="compact")
    broker.append("t", batch_of([b"%d" % n for n in range(9)], [b"k%d" % (n % 3) for n in range(9)]))
    broker.compact_topic("t", seal=True)
    broker.archive_topic("t", tmp_path)
    assert [record.offset for record in read_range(broker, "t", 0, 0, 9)] == [6, 7, 8]
    assert [record.offset for record in read_range(broker, "t", 0, 7, 8)] == [7]
    assert pa.concat_batches(list(broker.read("t", 0, 0, 9))).schema == READ_SCHEMA


def test_a_consumer_that_asks_for_it_starts_in_the_archive(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", segment_bytes=1)
    fill(broker, 12)
    broker.archive_topic("t", tmp_path)
    consumer = Consumer(broker, "t", start="earliest", until_end=True, on_lost="archive", batch_records=5)
    assert [record.offset for record in consumer] == [*range(12)]
    plain = Consumer(broker, "t", start="earliest", until_end=True)
    assert [record.offset for record in plain] == [*range(broker.start_offsets("t")[0], 12)]

"""What is due is done, by whoever comes first, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from log.records import batch_of, read_all, values
from potok.errors import LogError
from potok.log.broker import TopicConfig
from potok.log.embedded import catalog, embedded_broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.embedded.locks import upkeep_lock
from potok.log.embedded.metadata import Metadata
from potok.log.errors import TopicNotFound
from potok.records.log_record import LogRecord

DAY = 86_400_000


def later(monkeypatch: pytest.MonkeyPatch, ms: int) -> None:
    now = embedded_broker.now_ms()
    monkeypatch.setattr(embedded_broker, "now_ms", lambda: now + ms)


def put(broker: EmbeddedBroker, key: bytes, value: bytes | None) -> None:
    broker.append("t", [LogRecord(key, value, 1)])


def test_a_partition_is_compacted_when_half_of_it_is_dirty(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    for n in range(8):
        put(broker, b"k%d" % n, b"v")
    broker.maintain()
    assert broker.describe_topic("t").dirty_ratio == 0
    put(broker, b"k0", b"w")
    put(broker, b"k1", b"w")
    assert 0 < broker.describe_topic("t").dirty_ratio < 0.5
    broker.maintain()
    assert len(read_all(broker, "t")) == 10
    for n in range(8):
        put(broker, b"k%d" % n, b"x")
    broker.maintain()
    assert len(read_all(broker, "t")) == 9, "the last one lies in the active segment"


def test_failed_maintenance_of_a_topic_is_reported_and_the_others_are_maintained(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    broker.create_topic("a", segment_bytes=1, retention_ms=1, archive=tmp_path / "file")
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    for n in range(3):
        broker.append("a", [LogRecord(None, b"%d" % n)])
        put(broker, b"k", b"%d" % n)
    later(monkeypatch, DAY)
    with pytest.raises(LogError, match="cannot archive"):
        broker.maintain()
    assert len(values(broker, "a")) == 3
    assert values(broker, "t") == [b"1", b"2"]


def test_tombstones_that_have_stayed_long_enough_are_due(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    put(broker, b"a", b"1")
    put(broker, b"a", None)
    put(broker, b"b", b"1")
    broker.maintain()
    assert values(broker, "t") == [None, b"1"]
    later(monkeypatch, DAY + 1)
    broker.maintain()
    assert values(broker, "t") == [b"1"]


def test_retention_and_archive_of_all_topics_are_enforced(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("short", segment_bytes=1, retention_ms=60_000)
    broker.create_topic("long", segment_bytes=1)
    broker.create_topic("kept", segment_bytes=1, retention_ms=60_000, archive=tmp_path / "old")
    broker.create_topic("both", segment_bytes=1, retention_ms=60_000, cleanup_policy="compact,delete")
    broker.create_topic("table", segment_bytes=1, retention_ms=60_000, cleanup_policy="compact")
    for name in ("short", "long", "kept", "both", "table"):
        for n in range(3):
            broker.append(name, [LogRecord(b"k%d" % n, b"v")])
    later(monkeypatch, 61_000)
    broker.maintain()
    starts = {name: broker.start_offsets(name)[0] for name in broker.topics()}
    assert starts == {"short": 2, "long": 0, "kept": 2, "both": 2, "table": 0}
    assert broker.earliest_offsets("kept") == {0: 0}


def test_a_partition_that_another_process_maintains_is_skipped(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    for _ in range(3):
        put(broker, b"a", b"1")
    (directory,) = (broker.directory / "log" / "topics").glob("t-*/0")
    with upkeep_lock(directory, wait=False) as free:
        assert free
        broker.maintain()
        assert len(read_all(broker, "t")) == 3
    broker.maintain()
    assert len(read_all(broker, "t")) == 2


def test_reading_a_topic_deleted_meanwhile_raises_an_error(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact")
    put(broker, b"a", b"1")
    topic = broker._topic("t")
    broker.delete_topic("t")
    monkeypatch.setattr(type(broker._upkeep), "_topic", lambda self, name: topic)
    with pytest.raises(TopicNotFound):
        broker.compact_topic("t")


def test_a_deleted_topic_leaves_nothing_in_the_metadata(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact", archive=tmp_path / "old")
    for n in range(3):
        put(broker, b"a", b"%d" % n)
    broker.compact_topic("t", seal=True)
    broker.archive_topic("t")
    topic_id = broker._topic("t").id
    broker.delete_topic("t")
    left = broker._metadata.read(lambda txn: [key for key, _ in catalog.scan(txn, b"") if topic_id in key])
    assert left == []
    assert len(list((tmp_path / "old").rglob("*.parquet"))) > 0, "the archive is not the log's to delete"


def test_a_log_of_format_1_is_read_and_stays_so_until_it_is_compacted(broker: EmbeddedBroker) -> None:
    broker.create_topic("plain", segment_bytes=1, retention_ms=5)
    assert format_of(broker) == b"1"
    described = broker._metadata.read(lambda txn: orjson.loads(txn.get(b"tplain") or b""))
    assert set(described) == {
        "id",
        "partitions",
        "segment_bytes",
        "retention_ms",
        "retention_bytes",
        "created_at_ms",
    }
    assert broker.describe_topic("plain").config == TopicConfig(1, 5, None)
    broker.create_topic("t", cleanup_policy="compact")
    assert format_of(broker) == b"2"
    again = EmbeddedBroker(broker.directory)
    assert format_of(again) == b"2"
    again.close()


def test_archiving_makes_it_a_log_of_format_2(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t")
    broker.append("t", batch_of([b"v"]))
    assert format_of(broker) == b"1"
    broker.archive_topic("t", tmp_path, seal=True)
    assert format_of(broker) == b"2"
    shutil.rmtree(tmp_path / "data", ignore_errors=True)


def format_of(broker: EmbeddedBroker) -> bytes | None:
    metadata: Metadata = broker._metadata
    return metadata.read(lambda txn: txn.get(b"v"))

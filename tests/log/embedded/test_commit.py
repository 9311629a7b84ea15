from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from log.records import batch_of, read_all, values
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.embedded.segments import segment
from potok.log.errors import MetadataConflict, TopicNotFound

LARGE = 4000


def test_staged_output_and_metadata_keys_become_visible_together(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("a", 2)
    broker.create_topic("b")
    staging = tmp_path / "staging"
    staged = [
        broker.stage(staging, "b", 0, batch_of([b"first"])),
        broker.stage(staging, "a", 1, batch_of([b"x" * 100] * LARGE)),
        broker.stage(staging, "b", 0, batch_of([b"second"] * 20)),
        broker.stage(staging, "a", 0, batch_of([])),
    ]
    assert broker.end_offsets_of(["a", "b"]) == {"a": {0: 0, 1: 0}, "b": {0: 0}}
    assert len(list(staging.iterdir())) == 1
    broker.publish(pickle.loads(pickle.dumps(staged)), {"query": b"1"})
    assert values(broker, "b") == [b"first", *[b"second"] * 20]
    assert values(broker, "a", 1) == [b"x" * 100] * LARGE
    assert broker.get_metadata("query") == b"1"
    assert list(staging.iterdir()) == []


def test_output_that_has_no_directory_travels_whole_however_large_it_is(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    staged = broker.stage(None, "t", 0, batch_of([b"x" * 100] * LARGE))
    assert staged.path is None
    broker.publish([pickle.loads(pickle.dumps(staged))], {})
    assert values(broker, "t") == [b"x" * 100] * LARGE


def test_nothing_is_visible_if_a_metadata_key_has_another_value(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t")
    staged = broker.stage(tmp_path, "t", 0, batch_of([b"v"]))
    broker.publish([staged], {"batch": b"1"}, expect={"batch": None})
    with pytest.raises(MetadataConflict):
        broker.publish([staged], {"batch": b"1"}, expect={"batch": None})
    assert values(broker, "t") == [b"v"]
    broker.publish([], {"batch": None}, expect={"batch": b"1"})
    assert broker.get_metadata("batch") is None


def test_nothing_is_visible_where_one_topic_is_missing(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t")
    staged = [broker.stage(tmp_path, name, 0, batch_of([b"v"])) for name in ("t", "gone")]
    with pytest.raises(TopicNotFound):
        broker.publish(staged, {"batch": b"1"})
    assert broker.end_offsets("t") == {0: 0}
    assert broker.get_metadata("batch") is None


def test_a_metadata_key_changed_by_another_writer_meanwhile_stops_the_publish(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t")
    staged = broker.stage(tmp_path, "t", 0, batch_of([b"v"]))
    sync = segment.sync_data

    def rival(descriptor: int) -> None:
        sync(descriptor)
        broker.set_metadata({"epoch": b"2"})

    monkeypatch.setattr(segment, "sync_data", rival)
    with pytest.raises(MetadataConflict):
        broker.publish([staged], {}, expect={"epoch": None})
    monkeypatch.undo()
    assert broker.end_offsets("t") == {0: 0}
    broker.append("t", batch_of([b"w"]))
    assert values(broker, "t") == [b"w"]


def test_a_topic_deleted_during_the_write_stops_the_append(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t")
    sync = segment.sync_data

    def delete(descriptor: int) -> None:
        sync(descriptor)
        broker.delete_topic("t")
        broker.create_topic("t")

    monkeypatch.setattr(segment, "sync_data", delete)
    with pytest.raises(TopicNotFound):
        broker.append("t", batch_of([b"v"]))
    assert broker.end_offsets("t") == {0: 0}


def test_a_large_staged_file_is_adopted_and_not_copied(broker: EmbeddedBroker, tmp_path: Path) -> None:
    broker.create_topic("t", segment_bytes=1 << 20)
    broker.append("t", batch_of([b"before"]))
    staged = broker.stage(tmp_path / "staging", "t", 0, batch_of([b"x" * 100] * LARGE, at=77))
    inode = Path(staged.path or "").stat().st_ino
    broker.publish([staged, broker.stage(tmp_path, "t", 0, batch_of([b"after"]))], {})
    broker.append("t", batch_of([b"later"]))
    assert inode in {path.stat().st_ino for path in broker.directory.rglob("*.segment")}
    assert list((tmp_path / "staging").iterdir()) == []
    assert values(broker, "t") == [b"before", *[b"x" * 100] * LARGE, b"after", b"later"]
    assert [record.offset for record in read_all(broker, "t")] == list(range(LARGE + 3))
    assert broker.offset_at("t", 0, 77) == 1
    assert broker.describe_topic("t").partitions[0].segments == 2


def test_a_staged_file_of_another_file_system_is_copied(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: object, target: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(segment.os, "link", refuse)
    broker.create_topic("t", segment_bytes=1 << 20)
    staged = broker.stage(tmp_path / "staging", "t", 0, batch_of([b"x" * 100] * LARGE))
    broker.publish([staged], {})
    assert values(broker, "t") == [b"x" * 100] * LARGE
    assert list((tmp_path / "staging").iterdir()) == []


def test_an_adopted_file_can_be_published_again_after_a_failure(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", segment_bytes=1 << 20)
    staged = broker.stage(tmp_path / "staging", "t", 0, batch_of([b"x" * 100] * LARGE))

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(segment, "sync_data", fail)
    with pytest.raises(Exception, match="Input/output error"):
        broker.publish([staged], {})
    monkeypatch.undo()
    broker.append("t", batch_of([b"between"]))
    broker.publish([staged], {})
    assert values(broker, "t") == [b"between", *[b"x" * 100] * LARGE]


def test_segments_roll_by_size_and_stray_files_are_swept(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=2000)
    broker.append("t", batch_of([b"x" * 100] * 10))
    (first,) = broker.directory.rglob("*.segment")
    stray = first.with_name(f"{7:020d}.segment")
    stray.write_bytes(b"left by a commit that never was")
    for _ in range(5):
        broker.append("t", batch_of([b"x" * 100] * 10))
    names = [path.name for path in sorted(broker.directory.rglob("*.segment"))]
    assert names == [f"{base:020d}.segment" for base in (0, 20, 40)]
    assert broker.describe_topic("t").partitions[0].segments == 3
    assert len(values(broker, "t")) == 60


def test_one_append_of_many_frames_may_roll_several_times(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1 << 20)
    broker.append("t", batch_of([b"%07d" % n for n in range(200_000)]))
    assert broker.describe_topic("t").partitions[0].segments == 4
    assert values(broker, "t") == [b"%07d" % n for n in range(200_000)]

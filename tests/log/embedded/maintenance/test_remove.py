"""Single records are taken out of a partition, and the others stay where they were."""

from __future__ import annotations

import signal

import pytest

from log.records import read_all
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.embedded.maintenance import rewrite
from potok.log.errors import TopicNotFound
from potok.records.log_record import LogRecord


def fill(broker: EmbeddedBroker, count: int, **config: int) -> None:
    broker.create_topic("t", **config)
    for n in range(count):
        broker.append("t", [LogRecord(b"k" if n % 2 else None, b"value %d" % n, n, (("h", b"%d" % n),))])


def offsets(broker: EmbeddedBroker) -> list[int]:
    return [record.offset for record in read_all(broker, "t")]


def test_removed_records_are_deleted_from_disk_and_the_others_are_unchanged(broker: EmbeddedBroker) -> None:
    fill(broker, 10, segment_bytes=150)
    before = read_all(broker, "t")
    assert broker.remove_records("t", 0, [(2, 4), (9, 10)]) == 3
    assert read_all(broker, "t") == [record for record in before if record.offset not in (2, 3, 9)]
    on_disk = b"".join(path.read_bytes() for path in broker.directory.rglob("*.segment"))
    assert b"value 4" in on_disk
    assert not any(b"value %d" % n in on_disk for n in (2, 3, 9))
    assert broker.end_offsets("t") == {0: 10}
    broker.append("t", [LogRecord(None, b"next")])
    assert offsets(broker)[-1] == 10


def test_a_partition_starts_behind_what_was_removed_whole(broker: EmbeddedBroker) -> None:
    fill(broker, 5, segment_bytes=1)
    assert broker.remove_records("t", 0, [(0, 2), (3, 4)]) == 3
    assert broker.start_offsets("t") == {0: 2}
    assert offsets(broker) == [2, 4]
    assert broker.remove_records("t", 0, [(2, 5)]) == 2
    assert broker.start_offsets("t") == broker.end_offsets("t") == {0: 5}
    assert broker.describe_topic("t").records == 0


def test_what_was_removed_is_not_looked_for_again(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(broker, 6)
    assert broker.remove_records("t", 0, [(1, 3)]) == 2
    monkeypatch.setattr(rewrite.Rewriter, "rewrite", lambda *_: pytest.fail("rewritten for nothing"))
    assert broker.remove_records("t", 0, [(1, 3)]) == 0
    assert broker.remove_records("t", 0, []) == 0


def test_as_many_records_as_were_removed_before_are_removed_too(broker: EmbeddedBroker) -> None:
    fill(broker, 6)
    assert broker.remove_records("t", 0, [(1, 2)]) == 1
    assert broker.remove_records("t", 0, [(3, 4)]) == 1
    assert offsets(broker) == [0, 2, 4, 5]


def test_what_a_query_has_not_read_stays(broker: EmbeddedBroker) -> None:
    fill(broker, 6, segment_bytes=1)
    broker.set_protected("query", {("t", 0): 3})
    assert broker.remove_records("t", 0, [(1, 2), (4, 5)]) == 1
    assert offsets(broker) == [0, 2, 3, 4, 5]
    broker.set_protected("query", {})
    assert broker.remove_records("t", 0, [(1, 2), (4, 5)]) == 1
    assert offsets(broker) == [0, 2, 3, 5]


def test_a_query_that_comes_meanwhile_is_not_disturbed(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(broker, 4, segment_bytes=1)
    monkeypatch.setattr(
        rewrite, "failpoint", lambda name: name.endswith("synced") and broker.set_protected("query", {("t", 0): 0})
    )
    assert broker.remove_records("t", 0, [(1, 2)]) == 0
    assert offsets(broker) == [0, 1, 2, 3]


def test_an_older_version_must_not_read_such_a_log(broker: EmbeddedBroker) -> None:
    fill(broker, 3)
    assert broker._metadata.read(lambda txn: txn.get(b"v")) == b"1"
    broker.remove_records("t", 0, [(1, 2)])
    assert broker._metadata.read(lambda txn: txn.get(b"v")) == b"2"


def test_a_topic_or_a_partition_that_is_not_there_is_named(broker: EmbeddedBroker) -> None:
    fill(broker, 1)
    for topic, partition in (("no", 0), ("t", 1)):
        with pytest.raises(TopicNotFound):
            broker.remove_records(topic, partition, [(0, 1)])


@pytest.mark.kill
@pytest.mark.parametrize("step", ["written", "synced", "renamed", "committed", "deleted"])
def test_a_removal_killed_at_any_step_removes_nothing_else(run, broker: EmbeddedBroker, step: str) -> None:
    fill(broker, 6)
    killed = run("EmbeddedBroker(DATA).remove_records('t', 0, [(1, 3)])", f"log.compact.{step}:1")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert {0, 3, 4, 5} <= set(offsets(broker))
    broker.remove_records("t", 0, [(1, 3)])
    assert offsets(broker) == [0, 3, 4, 5]

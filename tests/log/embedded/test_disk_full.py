from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from log.records import batch_of, values
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.embedded.segments import segment
from potok.log.errors import DiskFull


def test_an_append_to_a_full_disk_leaves_nothing_and_later_ones_work(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", 2)
    broker.append("t", batch_of([b"a"] * 10), 0)
    writev = os.writev
    room = iter([100, 0])

    def almost_full(descriptor: int, buffers: list[memoryview]) -> int:
        left = next(room)
        if left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return writev(descriptor, [buffers[0][:left]])

    monkeypatch.setattr(segment.os, "writev", almost_full)
    with pytest.raises(DiskFull, match=r"No space left.*\n.*free some space"):
        broker.append("t", batch_of([b"b"] * 10), 0)
    monkeypatch.undo()
    assert values(broker, "t", 0) == [b"a"] * 10
    described = broker.describe_topic("t").partitions[0]
    assert sum(path.stat().st_size for path in broker.directory.rglob("*.segment")) == described.bytes
    broker.append("t", batch_of([b"c"] * 10), 0)
    assert values(broker, "t", 0) == [b"a"] * 10 + [b"c"] * 10


def test_a_write_that_takes_only_a_part_is_continued(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create_topic("t")
    writev = os.writev
    monkeypatch.setattr(segment.os, "writev", lambda fd, buffers: writev(fd, [buffers[0][:7]]))
    broker.append("t", batch_of([b"abc"] * 10))
    assert values(broker, "t") == [b"abc"] * 10


def test_staging_on_a_full_disk_says_so_and_leaves_no_file(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("potok.log.embedded.segments.staged.sync_data", full)
    with pytest.raises(DiskFull):
        broker.stage(tmp_path / "staging", "t", 0, batch_of([b"x" * 100] * 5000))
    assert list((tmp_path / "staging").iterdir()) == []


LIMITED = """
import resource
from potok.log.errors import DiskFull
broker = EmbeddedBroker(DATA)
broker.create_topic("t")
broker.append("t", [LogRecord(b"k", b"first")])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (%s, hard))
try:
    %s
except DiskFull as error:
    say("full")
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
broker.append("t", [LogRecord(b"k", b"last")])
"""


IN_A_SEGMENT = ("200_000", 'broker.append("t", [LogRecord(b"k", bytes(300_000))])')
IN_THE_METADATA = ("(Path(DATA) / 'log/meta/data.mdb').stat().st_size", 'broker.set_metadata({"m": bytes(100_000)})')


@pytest.mark.parametrize(("limit", "action"), [IN_A_SEGMENT, IN_THE_METADATA], ids=["segment", "metadata"])
def test_the_system_refusing_to_write_is_a_full_disk(run, broker: EmbeddedBroker, limit: str, action: str) -> None:
    done = run(LIMITED % (limit, action))
    assert (done.returncode, done.stdout) == (0, "full\n"), done.stderr
    assert values(broker, "t") == [b"first", b"last"]
    assert broker.list_metadata("") == {}


@pytest.mark.parametrize("work", ["compact", "archive"])
def test_old_records_stay_as_they_are_on_a_full_disk(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    broker.create_topic("t", segment_bytes=1, cleanup_policy="compact", archive=tmp_path / "old")
    for n in range(4):
        broker.append("t", batch_of([b"%d" % n] * 2, [b"a", b"k%d" % n]))
    before = values(broker, "t")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(segment.os, "writev", full)
    monkeypatch.setattr("potok.log.embedded.maintenance.archive.sync_data", full)
    with pytest.raises(DiskFull):
        broker.compact_topic("t", seal=True) if work == "compact" else broker.archive_topic("t", seal=True)
    monkeypatch.undo()
    assert values(broker, "t") == before
    assert list(broker.directory.rglob("*.compacting")) == [p for p in (tmp_path / "old").rglob("*") if p.is_file()]
    broker.compact_topic("t", seal=True)
    assert values(broker, "t") == [b"0", b"1", b"2", b"3", b"3"]

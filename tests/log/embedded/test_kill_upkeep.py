"""kill -9 at every step of compaction and archive: every record is there once, and maintenance continues."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from log.beside import append_rounds
from log.records import read_all, read_range
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord

pytestmark = pytest.mark.kill

COMPACTION = ["written", "synced", "renamed", "committed", "deleted"]
ARCHIVE = ["written", "renamed", "committed", "deleted"]


@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("step", COMPACTION)
def test_a_compaction_killed_at_any_step_loses_nothing(run, broker: EmbeddedBroker, step: str, nth: int) -> None:
    broker.create_topic("t", segment_bytes=3000, cleanup_policy="compact", delete_retention_ms=0)
    last = append_rounds(broker, 12)
    before = {record.offset: record for record in read_all(broker, "t")}
    killed = run("EmbeddedBroker(DATA).compact_topic('t')", f"log.compact.{step}:{nth}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    found = {record.offset: record for record in read_all(broker, "t")}
    assert found.items() <= before.items()
    assert newest(broker) == last
    more = append_rounds(broker, 1, first=12)
    broker.compact_topic("t", seal=True)
    assert newest(broker) == last | more
    live = {key: value for key, value in (last | more).items() if value is not None}
    assert len(read_all(broker, "t")) == len(live), "each key once, and no tombstone"
    expect_no_leftovers(broker)


def newest(broker: EmbeddedBroker) -> dict[bytes | None, bytes | None]:
    """What a table over the topic holds, deleted keys among it; a tombstone may have gone, its key never comes back."""
    found = {record.key: record.value for record in read_all(broker, "t")}
    return {b"k%d" % n: found.get(b"k%d" % n) for n in range(40)}


@pytest.mark.parametrize("step", ARCHIVE)
def test_an_archiving_killed_at_any_step_loses_nothing(run, broker: EmbeddedBroker, tmp_path: Path, step: str) -> None:
    broker.create_topic("t", segment_bytes=3000, archive=tmp_path / "old")
    append_rounds(broker, 12)
    before = read_all(broker, "t")
    killed = run("EmbeddedBroker(DATA).archive_topic('t')", f"log.archive.{step}:3")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert read_range(broker, "t", 0, 0, len(before)) == before
    assert broker.start_offsets("t")[0] > 0
    broker.archive_topic("t", seal=True)
    assert read_range(broker, "t", 0, 0, len(before)) == before
    assert broker.start_offsets("t") == broker.end_offsets("t")
    expect_no_leftovers(broker)
    files = [path for path in (tmp_path / "old").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".parquet"}


def expect_no_leftovers(broker: EmbeddedBroker) -> None:
    (part,) = broker.describe_topic("t").partitions
    files = [path for path in (broker.directory / "log" / "topics").rglob("*") if path.is_file()]
    held = [path for path in files if path.name not in ("lock", "upkeep")]
    assert sum(path.stat().st_size for path in held) == part.bytes
    assert {path.suffix for path in held} <= {".segment"}


READER = """
broker = EmbeddedBroker(DATA)
say("ready")
while not Path(DATA, "stop").exists():
    offsets = [offset for batch in broker.read("t", 0, 0, broker.end_offsets("t")[0])
               for offset in batch.column("offset").to_pylist()]
    assert offsets == sorted(set(offsets)), offsets
"""

COMPACTOR = """
broker = EmbeddedBroker(DATA)
say("ready")
while not Path(DATA, "stop").exists():
    broker.compact_topic("t")
"""


def test_processes_that_append_read_and_compact_at_once_do_not_disturb_each_other(
    start, broker: EmbeddedBroker
) -> None:
    broker.create_topic("t", segment_bytes=2000, cleanup_policy="compact")
    beside = [start(program) for program in (READER, READER, COMPACTOR)]
    for process in beside:
        assert process.stdout.readline() == "ready\n"
    appended = threading.Thread(
        target=lambda: [
            broker.append("t", [LogRecord(b"k%d" % (n % 17), b"%d" % n), LogRecord(b"n%d" % n, b"%d" % n)])
            for n in range(400)
        ]
    )
    appended.start()
    for _ in range(30):
        broker.compact_topic("t")
    appended.join(60)
    (broker.directory / "stop").touch()
    for process in beside:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    broker.compact_topic("t", seal=True)
    found = {record.key: record.value for record in read_all(broker, "t")}
    expected = {b"k%d" % (n % 17): b"%d" % n for n in range(400)} | {b"n%d" % n: b"%d" % n for n in range(400)}
    assert found == expected
    assert len(read_all(broker, "t")) == len(expected)
    expect_no_leftovers(broker)

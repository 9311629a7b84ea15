"""Single records by their positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.log import read_positions as pick
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.read_positions import read_positions
from potok.records.log_record import LogRecord


@pytest.fixture
def reads(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The ranges that are read."""
    seen: list[tuple[int, int]] = []
    read = broker.read

    def counted(topic: str, partition: int, start: int, end: int):
        seen.append((start, end))
        return read(topic, partition, start, end)

    monkeypatch.setattr(broker, "read", counted)
    monkeypatch.setattr(pick, "NEAR", 10)
    return seen


def picked(broker: EmbeddedBroker, *offsets: int) -> list[int]:
    return [n for batch in read_positions(broker, "t", 0, offsets) for n in batch.column("offset").to_pylist()]


def test_neighbours_are_read_together_and_those_far_away_apart(broker: EmbeddedBroker, reads: list) -> None:
    broker.create_topic("t")
    broker.append("t", [LogRecord(b"k", b"%d" % n) for n in range(100)])
    assert picked(broker, 50, 3, 13, 3, 61) == [3, 13, 50, 61]
    assert reads == [(3, 14), (50, 51), (61, 62)]
    assert picked(broker) == []


def test_what_the_log_no_longer_holds_is_left_out(broker: EmbeddedBroker, reads: list) -> None:
    broker.create_topic("t", segment_bytes=1, retention_bytes=0)
    for n in range(6):
        broker.append("t", [LogRecord(b"k", b"%d" % n)])
    assert broker.start_offsets("t") == {0: 5}
    assert picked(broker, 0, 1, 5, 7) == [5]
    assert picked(broker, 0, 1) == []


def test_gaps_and_the_archive_make_no_difference(broker: EmbeddedBroker, reads: list, tmp_path: Path) -> None:
    broker.create_topic("t", segment_bytes=1)
    for n in range(6):
        broker.append("t", [LogRecord(b"k", b"%d" % n)])
    broker.remove_records("t", 0, [(2, 4)])
    broker.archive_topic("t", tmp_path / "old")
    assert picked(broker, 1, 2, 3, 4) == [1, 4]

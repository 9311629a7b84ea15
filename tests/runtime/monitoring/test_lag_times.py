"""The age of an unread record follows from where the end of its partition was when."""

from __future__ import annotations

from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.runtime.monitoring.lag_times import MOST_SIGHTINGS, LagTimes, Sightings


@pytest.fixture
def times(tmp_path: Path) -> LagTimes:
    return LagTimes(EmbeddedBroker(tmp_path))


def test_a_partition_that_was_read_to_its_end_has_no_lag(times: LagTimes) -> None:
    times.note("t", 0, 100, 1_000)
    assert times.lag_ms("t", 0, 100, 100, 1_000) == 0


def test_between_two_sightings_the_time_is_interpolated(times: LagTimes) -> None:
    times.note("t", 0, 100, 10_000)
    times.note("t", 0, 200, 20_000)
    assert times.lag_ms("t", 0, 100, 200, 25_000) == 15_000
    assert times.lag_ms("t", 0, 150, 200, 25_000) == 10_000


def test_a_record_that_came_after_a_quiet_time_is_not_older_than_that(times: LagTimes) -> None:
    for at_ms in (10_000, 20_000, 30_000, 40_000):
        times.note("t", 0, 100, at_ms)
    times.note("t", 0, 101, 50_000)
    assert times.lag_ms("t", 0, 100, 101, 60_000) == 20_000


def test_a_topic_that_was_created_again_is_seen_anew(times: LagTimes) -> None:
    times.note("t", 0, 100, 10_000)
    times.note("t", 0, 5, 20_000)
    assert times.lag_ms("t", 0, 3, 5, 20_000) is None


def test_sightings_are_bounded_and_keep_the_first(times: LagTimes) -> None:
    found = Sightings()
    for number in range(10 * MOST_SIGHTINGS):
        found.note(number * 10, number * 1_000)
    assert len(found.ends) <= MOST_SIGHTINGS
    assert found.ends[0] == 0
    assert found.appended_at(5)[0] == pytest.approx(500, abs=1)  # type: ignore[index]


def test_an_old_record_is_read_once_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = EmbeddedBroker(tmp_path)
    broker.create_topic("t", 1)
    broker.append("t", [LogRecord(b"k", b"v", n) for n in range(10)])
    [batch] = broker.read("t", 0, 4, 5)
    ingested = batch.column("ingested")[0].as_py()
    reads: list[int] = []
    read = broker.read
    monkeypatch.setattr(broker, "read", lambda *where: reads.append(where[2]) or read(*where))
    times = LagTimes(broker)
    now = ingested + 3_600_000
    times.note("t", 0, 10, now)
    assert times.lag_ms("t", 0, 4, 10, now) is None
    for _ in range(3):
        times.read_wanted()
        times.settle()
        assert times.lag_ms("t", 0, 4, 10, now) == 3_600_000
    assert reads == [4]


def test_a_record_that_cannot_be_read_has_no_known_age(times: LagTimes) -> None:
    times.note("gone", 0, 10, 1_000)
    assert times.lag_ms("gone", 0, 4, 10, 1_000) is None
    times.read_wanted()
    times.settle()
    assert times.lag_ms("gone", 0, 4, 10, 1_000) is None


def test_partitions_that_nobody_reads_any_more_are_forgotten(times: LagTimes) -> None:
    times.note("t", 0, 100, 10_000)
    times.note("t", 0, 200, 20_000)
    times.retain([("other", 0)])
    assert times.lag_ms("t", 0, 150, 200, 25_000) is None

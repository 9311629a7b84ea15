"""Stream time, idle partitions and the closing clock, through real batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import potok
from potok import StreamsBuilder, minutes, tumbling
from potok.snapshots.progress import read_progress
from potok.snapshots.tables import NoSuchQuery
from potok.testing import TestDriver

pytestmark = pytest.mark.spark

MINUTE = 60_000


def per_minute() -> StreamsBuilder:
    builder = StreamsBuilder("clock")
    windows = builder.stream("orders").group_by_key().windowed_by(tumbling(minutes(1), retention=minutes(2)))
    windows.count(name="counts")
    return builder


def starts(table: Any) -> list[int]:
    return sorted({key.start_ms // MINUTE for key in table.all()})


def test_a_partition_that_lies_behind_keeps_windows_open(spark: Any) -> None:
    with TestDriver(per_minute(), partitions={"orders": 2}) as driver:
        driver.send("orders", 1, key="a", timestamp=10 * MINUTE, partition=0)
        driver.send("orders", 1, key="b", timestamp=0, partition=1)
        driver.run()
        assert starts(driver.table("counts")) == [0, 10]

        driver.send("orders", 1, key="b", timestamp=10 * MINUTE, partition=1)
        driver.run()
        assert starts(driver.table("counts")) == [10]


def test_the_watermark_can_be_advanced_without_records(spark: Any) -> None:
    with TestDriver(per_minute()) as driver:
        driver.send("orders", 1, key="a", timestamp=0)
        driver.run()
        assert starts(driver.table("counts")) == [0]
        assert driver.advance_to(3 * MINUTE) == 1
        assert starts(driver.table("counts")) == []

        driver.send("orders", 1, key="a", timestamp=MINUTE)
        driver.run()
        assert [letter.reason for letter in driver.dead_letters()] == ["late"]


@pytest.mark.timeout(120)
def test_an_idle_partition_no_longer_holds_back_the_watermark(spark: Any, tmp_path: Path) -> None:
    with potok.Producer(tmp_path) as producer:
        producer.broker.create_topic("orders", 2)
        producer.send("orders", 1, key="a", timestamp=0, partition=0)
        producer.send("orders", 1, key="a", timestamp=10 * MINUTE, partition=0)
    with potok.start(per_minute(), broker=tmp_path, idle_after_ms=500) as query:
        while True:
            assert query.is_active
            try:
                if starts(potok.open_tables(tmp_path, "clock")["counts"]) == [10]:
                    break
            except NoSuchQuery:
                continue
    assert ("orders", 1) in query.offsets.idle


def test_a_record_from_the_far_future_is_counted_and_warned_about(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    with TestDriver(per_minute()) as driver:
        driver.send("orders", 1, key="a", timestamp=0)
        driver.send("orders", 1, key="a", timestamp=3 * 365 * 24 * 60 * MINUTE)
        driver.send("orders", 1, key="a", timestamp=1)
        driver.run()
        progress = read_progress(driver.broker, "clock")
    assert progress is not None
    assert progress.stream_time_jumps == {"orders": 1}
    assert progress.steps["counts"]["late"] == 1
    assert "max_jump" in caplog.text

"""Compacted topics on both ends of a query: as what it writes, and with gaps in what it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from potok.dsl.builder import StreamsBuilder
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.snapshots.progress import read_progress
from potok.testing import TestDriver

pytestmark = pytest.mark.spark


def test_a_topic_is_created_as_its_sink_says(spark: Any) -> None:
    builder = StreamsBuilder("q")
    stream = builder.stream("in")
    stream.to("out", partitions=2, retention="1 day", cleanup_policy="compact,delete")
    with TestDriver(builder) as driver:
        described = driver.broker.describe_topic("out")
        assert len(described.partitions) == 2
        assert (described.config.cleanup_policy, described.config.retention_ms) == ("compact,delete", 86_400_000)


def test_a_record_without_a_key_is_a_dead_letter_of_a_compacted_sink(spark: Any) -> None:
    builder = StreamsBuilder("q")
    builder.stream("in").to("out", cleanup_policy="compact")
    with TestDriver(builder) as driver:
        for n, key in enumerate(("a", None, "b", None)):
            driver.send("in", {"n": n}, key=key)
        driver.run()
        assert [(record.key, record.value["n"]) for record in driver.read("out")] == [("a", 0), ("b", 2)]
        letters = driver.dead_letters()
        assert [letter.offset for letter in letters] == [1, 3]
        assert {letter.reason for letter in letters} == {"refused"}
        assert "rejects records without a key" in letters[0].error


def test_a_table_reads_a_compacted_topic_through_its_gaps(spark: Any, tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    broker.create_topic("users", segment_bytes=1, cleanup_policy="compact")
    fill(broker, 20)
    broker.compact_topic("users", seal=True)
    assert broker.describe_topic("users").records == 2
    builder = StreamsBuilder("q")
    builder.table("users")
    with TestDriver(builder, directory=tmp_path) as driver:
        assert driver.run(batch_records=8) == 5, "most batches hold offsets and no records"
        assert driver.table("users").all() == {"a": 19, "b": 19}
        assert driver.dead_letters() == []
        progress = read_progress(broker, "q")
        assert progress is not None and progress.total_in == 2
        fill(broker, 3)
        driver.run()
        assert driver.table("users").all() == {"a": 2, "b": 2}


def test_what_a_query_has_not_read_is_not_compacted_from_its_first_start_on(spark: Any, tmp_path: Path) -> None:
    broker = EmbeddedBroker.shared(tmp_path)
    broker.create_topic("users", segment_bytes=1, cleanup_policy="compact")
    builder = StreamsBuilder("q")
    builder.table("users").to_stream(changes=True).to("changes")
    with TestDriver(builder, directory=tmp_path):
        fill(broker, 5)
        broker.compact_topic("users", seal=True)
        assert broker.describe_topic("users").records == 10


def fill(broker: EmbeddedBroker, rounds: int) -> None:
    for n in range(rounds):
        for key in (b"a", b"b"):
            broker.append("users", [LogRecord(key, b"%d" % n, n)])

from __future__ import annotations

import pytest

from log.records import batch_of, values
from potok.log.embedded import embedded_broker
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import InvalidName, OffsetOutOfRange


def fill(broker: EmbeddedBroker, count: int = 5) -> None:
    """One segment for each append."""
    for n in range(count):
        broker.append("t", batch_of([b"%d" % n]))


def later(monkeypatch: pytest.MonkeyPatch, ms: int) -> None:
    now = embedded_broker.now_ms()
    monkeypatch.setattr(embedded_broker, "now_ms", lambda: now + ms)


def test_segments_over_the_size_are_deleted_when_one_rolls(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, retention_bytes=250)
    fill(broker)
    size = broker.describe_topic("t").partitions[0].bytes
    assert size <= 250
    assert broker.start_offsets("t")[0] > 0
    assert size == sum(path.stat().st_size for path in broker.directory.rglob("*.segment"))
    assert values(broker, "t")[-1] == b"4"
    with pytest.raises(OffsetOutOfRange, match="deleted by retention"):
        broker.read("t", 0, 0, 5)


def test_segments_over_the_age_are_deleted_by_the_time_of_ingestion(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("t", segment_bytes=1, retention_ms=60_000)
    fill(broker)
    assert broker.enforce_retention() == {}
    later(monkeypatch, 61_000)
    assert broker.enforce_retention() == {("t", 0): 4}
    assert values(broker, "t") == [b"4"]
    assert broker.offset_at("t", 0, 0) == 4
    assert len(list(broker.directory.rglob("*.segment"))) == 1


def test_what_is_still_needed_is_kept(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, retention_bytes=0)
    broker.set_protected("query", {("t", 0): 2, ("elsewhere", 0): 0})
    fill(broker)
    assert broker.start_offsets("t") == {0: 2}
    broker.set_protected("query", {("t", 0): 3})
    assert broker.enforce_retention("t", protect={("t", 0): 2}) == {}
    assert broker.enforce_retention("t") == {("t", 0): 3}
    broker.set_protected("query", {})
    assert broker.enforce_retention("t") == {("t", 0): 4}


def test_a_topic_without_retention_keeps_everything(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create_topic("t", segment_bytes=1)
    fill(broker)
    later(monkeypatch, 1 << 50)
    assert broker.enforce_retention() == {}
    assert len(values(broker, "t")) == 5


def test_appending_continues_after_retention(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", segment_bytes=1, retention_bytes=0)
    fill(broker)
    broker.append("t", batch_of([b"next"]))
    assert broker.end_offsets("t") == {0: 6}
    assert values(broker, "t") == [b"next"]


def test_an_owner_needs_a_name(broker: EmbeddedBroker) -> None:
    with pytest.raises(InvalidName):
        broker.set_protected("", {("t", 0): 1})

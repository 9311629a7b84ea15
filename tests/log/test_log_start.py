"""A reader whose next records were deleted: it hears of it, and nothing is skipped in silence."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from potok.errors import LogError
from potok.log.clients.consumer import Consumer
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import FellBehindError
from potok.log.log_start import OnLost
from potok.records.log_record import LogRecord


def cut_off(broker: EmbeddedBroker, gone: int, archive: Path | None = None) -> None:
    """Group "g" is to go on at offset 1, of which and of those behind it `gone` are deleted."""
    broker.create_topic("t", segment_bytes=1, retention_bytes=0, archive=archive)
    broker.append("t", [LogRecord(None, b"0"), *(LogRecord(None, b"%d" % (n + 1)) for n in range(gone))])
    broker.commit("g", "t", {0: 1})
    broker.append("t", [LogRecord(None, b"last")])
    broker.enforce_retention("t")
    assert broker.start_offsets("t") == {0: gone + 1}


def test_by_default_it_stops_and_says_how_many_are_gone(broker: EmbeddedBroker) -> None:
    cut_off(broker, 3)
    with Consumer(broker, "t", group="g") as consumer:
        for _ in range(2):
            with pytest.raises(FellBehindError, match=r'group "g" fell behind: 3 records of "t" partition 0') as raised:
                consumer.poll()
        assert raised.value.gone == 3
        assert 'on_lost="jump"' in raised.value.hint
        with pytest.raises(FellBehindError):
            next(iter(consumer))


def test_skipping_continues_after_the_gap_with_a_warning(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    cut_off(broker, 3)
    with Consumer(broker, "t", group="g", on_lost="jump") as consumer, caplog.at_level(logging.WARNING, "potok.log"):
        assert [record.text() for record in consumer.poll()] == ["last"]
        assert [record.text() for record in consumer.poll()] == []
    (line,) = caplog.messages
    assert line == (
        'group "g" fell behind and continues at offset 4 of "t" partition 0: 3 records were deleted before it read them'
    )


def test_the_archive_has_what_retention_took(broker: EmbeddedBroker, tmp_path: Path) -> None:
    cut_off(broker, 3, tmp_path / "archive")
    with (
        Consumer(broker, "t", group="g") as consumer,
        pytest.raises(FellBehindError, match="hint: its archive holds them: pass"),
    ):
        consumer.poll()
    with Consumer(broker, "t", group="g", on_lost="archive") as consumer:
        assert [record.text() for record in consumer.poll()] == ["1", "2", "3", "last"]
    everything = Consumer(broker, "t", start="earliest", on_lost="archive")
    assert [record.text() for record in everything.poll()] == ["0", "1", "2", "3", "last"]


def test_without_an_archive_there_is_nothing_to_read_from_it(broker: EmbeddedBroker) -> None:
    cut_off(broker, 3)
    with Consumer(broker, "t", group="g", on_lost="archive") as consumer, pytest.raises(FellBehindError):
        consumer.poll()


@pytest.mark.parametrize("on_lost", ["stop", "jump"])
def test_a_consumer_overtaken_by_retention_gets_an_error(broker: EmbeddedBroker, on_lost: OnLost) -> None:
    broker.create_topic("t", segment_bytes=1, retention_bytes=0)
    broker.append("t", [LogRecord(None, b"0"), LogRecord(None, b"1")])
    consumer = Consumer(broker, "t", start="earliest", on_lost=on_lost)
    assert len(consumer.poll(max_records=1)) == 1
    broker.append("t", [LogRecord(None, b"2")])
    if on_lost == "jump":
        assert [record.text() for record in consumer.poll()] + [record.text() for record in consumer.poll()] == ["2"]
    else:
        with pytest.raises(FellBehindError, match="the consumer fell behind: 1 record of"):
            consumer.poll()


def test_an_unknown_argument_is_refused(broker: EmbeddedBroker) -> None:
    broker.create_topic("t")
    with pytest.raises(LogError, match='use "stop", "jump" or "archive"'):
        Consumer(broker, "t", on_lost="ignore")  # type: ignore[arg-type]

"""Appending what was buffered, while the log works and while it does not."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from potok.errors import LogError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.sources import Overload
from potok.sources.appender import Appender
from potok.sources.arrival import Arrival, columns_of
from potok.sources.buffer import Buffer
from potok.sources.counters import Counters
from tests.log.waiting import until


class AwayBroker(EmbeddedBroker):
    """A log that does not accept anything until `there` is set."""

    there = threading.Event()
    tried = threading.Event()

    def append(self, topic: str, batch: Any, partition: int | None = None) -> Any:
        self.tried.set()
        if not self.there.is_set():
            raise LogError("the log is away")
        return super().append(topic, batch, partition)


@pytest.fixture
def broker(tmp_path: Path) -> AwayBroker:
    broker = AwayBroker(tmp_path)
    broker.there, broker.tried = threading.Event(), threading.Event()
    broker.create_topic("t")
    return broker


def values(broker: EmbeddedBroker, topic: str = "t") -> list[bytes]:
    ends = broker.end_offsets(topic)
    return [v for p, end in ends.items() for batch in broker.read(topic, p, 0, end) for v in batch["value"].to_pylist()]


def appending(broker: EmbeddedBroker, overload: Overload) -> tuple[Buffer, Counters, Appender]:
    counters = Counters()
    buffer = Buffer(overload, counters)
    appender = Appender("test", broker, "t", buffer)
    appender.start()
    return buffer, counters, appender


def offer(buffer: Buffer, *data: bytes, reported: list[str | None] | None = None) -> None:
    done = None if reported is None else reported.append
    assert buffer.offer(Arrival.of([LogRecord(None, each) for each in data], done))


def test_records_are_acknowledged_once_they_are_durable(broker: AwayBroker) -> None:
    buffer, counters, appender = appending(broker, Overload())
    reported: list[str | None] = []
    offer(buffer, b"a", b"b", reported=reported)
    broker.tried.wait(10)
    assert reported == []
    assert counters.read().buffered == 2
    broker.there.set()
    until(lambda: bool(reported))
    assert (reported, values(broker)) == ([None], [b"a", b"b"])
    appender.stop(10)
    assert appender.error is None


def test_what_is_buffered_lands_before_the_end(broker: AwayBroker) -> None:
    broker.there.set()
    buffer, counters, appender = appending(broker, Overload())
    for number in range(500):
        offer(buffer, b"%d" % number)
    appender.stop(30)
    assert values(broker) == [b"%d" % number for number in range(500)]
    assert counters.read().landed == 500


def test_records_are_lost_with_a_reason_if_the_log_stays_away(broker: AwayBroker) -> None:
    buffer, counters, appender = appending(broker, Overload())
    reported: list[str | None] = []
    offer(buffer, b"a", reported=reported)
    broker.tried.wait(10)
    offer(buffer, b"b", reported=reported)
    until(lambda: appender.error is not None and "the log is away" in appender.error)
    appender.stop(0.1)
    assert reported == ["stopped", "stopped"]
    assert (counters.read().lost, counters.read().buffered) == ({"stopped": 2}, 0)


def test_records_expire_while_the_log_is_away(broker: AwayBroker) -> None:
    buffer, counters, appender = appending(broker, Overload(max_age="10 ms"))
    offer(buffer, b"a")
    until(lambda: counters.read().lost == {"expired": 1})
    broker.there.set()
    appender.stop(10)
    assert values(broker) == []


def test_a_record_that_the_topic_does_not_accept_does_not_hold_up_the_others(tmp_path: Path) -> None:
    broker = EmbeddedBroker(tmp_path)
    broker.create_topic("t", cleanup_policy="compact")
    buffer, counters, appender = appending(broker, Overload())
    reported: list[str | None] = []
    offer(buffer, b"without a key", reported=reported)
    buffer.offer(Arrival.of([LogRecord(b"k", b"v")], reported.append))
    appender.stop(10)
    assert sorted(reported, key=str) == [None, "not_accepted"]
    assert values(broker) == [b"v"]
    assert counters.read().lost == {"not_accepted": 1}


def test_arrivals_become_one_batch_in_order_whatever_holds_their_records() -> None:
    columns = Arrival.of([LogRecord(b"k", b"3", 3)]).columns()
    arrivals = [
        Arrival.of([LogRecord(None, b"1", 1), LogRecord(None, None, 2, (("h", b"x"), ("n", None)))]),
        Arrival.of([]),
        Arrival(columns, 2),
        Arrival(columns.slice(0, 0), 0),
        Arrival.of([LogRecord(b"k", b"4", 4)]),
    ]
    batch = columns_of(arrivals)
    assert [tuple(row.values()) for row in batch.to_pylist()] == [
        (None, b"1", 1, None),
        (None, None, 2, [{"name": "h", "value": b"x"}, {"name": "n", "value": None}]),
        (b"k", b"3", 3, None),
        (b"k", b"4", 4, None),
    ]
    assert columns_of([Arrival.of([])]).num_rows == 0

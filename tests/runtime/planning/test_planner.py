"""What the next batch should reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.runtime.planning.planner import Planner
from potok.runtime.queries.ledger import Ledger
from potok.state.entry import Entry, metadata_key_of
from potok.state.offsets import Offsets

LONG = 1 << 40


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker.shared(tmp_path)
    broker.create_topic("t", 2)
    yield broker
    broker.close()


def append(broker: EmbeddedBroker, count: int, partition: int = 0) -> None:
    broker.append("t", [LogRecord(b"k", b"1", 1) for _ in range(count)], partition)


def committed(broker: EmbeddedBroker, **fields: Any) -> None:
    broker.set_metadata({metadata_key_of("q", "ledger"): Entry(epoch=1, **fields).to_bytes()})


def planner(broker: EmbeddedBroker, *, idle_after_ms: int = LONG, most: int = LONG, target: Any = None) -> Planner:
    return Planner(broker, Ledger(broker, "q"), ["t"], {"w": {"t"}}, idle_after_ms, most, target)


READ = Offsets({"t": {0: 3, 1: 0}})
OPEN = {"stream_times": {"t": {0: 100}}, "next_ends": {"w": 50}}


def test_new_records_are_the_next_batch(broker: EmbeddedBroker) -> None:
    append(broker, 3)
    assert planner(broker).next() == Offsets({"t": {0: 3, 1: 0}})


def test_nothing_new_is_the_last_batch_again(broker: EmbeddedBroker) -> None:
    append(broker, 3)
    committed(broker, offsets=READ)
    assert planner(broker).next() == READ


@pytest.mark.parametrize(("most", "limit"), [(2, None), (LONG, 2), (1, 2), (2, 9)])
def test_a_batch_is_no_larger_than_the_limit(broker: EmbeddedBroker, most: int, limit: int | None) -> None:
    append(broker, 5)
    assert planner(broker, most=most).next(limit).topics["t"][0] == min(most, 2)


def test_a_run_to_the_end_stops_at_its_target(broker: EmbeddedBroker) -> None:
    append(broker, 3)
    target = {"t": {0: 3, 1: 0}}
    append(broker, 4)
    assert planner(broker, target=target).next().topics == target


def test_a_run_to_the_end_reads_what_came_of_its_records_in_topics_of_its_own(broker: EmbeddedBroker) -> None:
    broker.create_topic("own", 1)
    append(broker, 3)
    target = {"t": {0: 3, 1: 0}, "own": {0: 0}}
    found = Planner(broker, Ledger(broker, "q"), ["t", "own"], {}, LONG, LONG, target, own=frozenset({"own"}))
    assert found.next().topics == target
    committed(broker, offsets=Offsets(target))
    append(broker, 4)
    assert found.next() == Offsets(target)
    broker.append("own", [LogRecord(b"k", b"1", 1)] * 2, 0)
    assert found.next().topics == {**target, "own": {0: 2}}


def test_windows_that_have_ended_cause_an_empty_batch(broker: EmbeddedBroker) -> None:
    append(broker, 3)
    committed(broker, offsets=READ, stream_times={"t": {0: 100, 1: 60}}, next_ends={"w": 50})
    assert planner(broker).next() == Offsets(READ.topics, empty_batches=1)


def test_windows_that_are_open_do_not(broker: EmbeddedBroker) -> None:
    append(broker, 3)
    committed(broker, offsets=READ, stream_times={"t": {0: 100, 1: 40}}, next_ends={"w": 50})
    assert planner(broker).next() == READ


def test_records_come_before_ticks(broker: EmbeddedBroker) -> None:
    append(broker, 4)
    committed(broker, offsets=READ, stream_times={"t": {0: 100, 1: 60}}, next_ends={"w": 50})
    assert planner(broker).next().empty_batches == 0


def test_an_empty_partition_is_idle_at_the_end_of_a_run(broker: EmbeddedBroker) -> None:
    append(broker, 3)
    committed(broker, offsets=READ, **OPEN)
    assert planner(broker).next() == READ
    found = planner(broker, target={"t": {0: 3, 1: 0}}).next()
    assert (found.empty_batches, found.idle) == (1, frozenset({("t", 1)}))


def test_a_partition_that_has_been_quiet_for_long_enough_is_let_go(broker: EmbeddedBroker) -> None:
    append(broker, 3)
    committed(broker, offsets=READ, **OPEN)
    found = planner(broker, idle_after_ms=0).next()
    assert found.empty_batches == 1 and ("t", 1) in found.idle


def test_no_partition_is_marked_idle_without_need(broker: EmbeddedBroker) -> None:
    append(broker, 3)
    committed(broker, offsets=READ, stream_times={"t": {0: 100}}, next_ends={"w": 101})
    assert planner(broker, idle_after_ms=0).next() == READ


def test_a_partition_that_returns_holds_back_the_watermark_again(broker: EmbeddedBroker) -> None:
    append(broker, 3)
    append(broker, 1, partition=1)
    committed(broker, offsets=Offsets(READ.topics, 1, frozenset({("t", 0), ("t", 1)})), **OPEN)
    found = planner(broker).next()
    assert found.topics == {"t": {0: 3, 1: 1}} and found.idle == frozenset({("t", 0)})


def test_partitions_that_come_later_are_read(broker: EmbeddedBroker) -> None:
    append(broker, 3)
    committed(broker, offsets=Offsets({"t": {0: 3}}))
    append(broker, 1, partition=1)
    assert planner(broker).next().topics == {"t": {0: 3, 1: 1}}

"""A process that was paused, and whose queries another one runs by now: it gives way, and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.runtime.queries.group_query import QueryState
from potok.runtime.queries.lock import QueryTakenOver
from potok.snapshots.ledger_view import read_entry
from runtime.queries.by_hand import ByHand, counting, send

NAMES = ("one", "two")


def opened(directory: Path) -> ByHand:
    """A process that runs both queries; the locks are those of another machine."""
    found = ByHand(directory)
    for name in NAMES:
        found.add(counting(name))
    found.kill()
    return found


@pytest.fixture
def paused(tmp_path: Path) -> Iterator[ByHand]:
    """One that has run a batch before it was paused."""
    found = opened(tmp_path)
    send(found.broker, 10)
    found.settle()
    yield found
    found.stop()
    found.broker.close()


@pytest.fixture
def second(paused: ByHand, tmp_path: Path) -> Iterator[ByHand]:
    found = opened(tmp_path)
    yield found
    found.stop()


def epochs(broker: EmbeddedBroker) -> list[int]:
    entries = [read_entry(broker, name) for name in NAMES]
    return [entry.epoch for entry in entries if entry is not None]


def test_the_batch_of_a_process_that_lost_its_queries_ends_it_and_the_other_continues(
    paused: ByHand, second: ByHand
) -> None:
    send(second.broker, 10)
    with pytest.raises(QueryTakenOver, match=rf"taken over by process {os.getpid()} on \S+, so this process"):
        paused.settle()
    assert paused.counts("one") == {f"u{n}": 2 for n in range(5)}, "nothing of it is visible"
    second.settle()
    for name in NAMES:
        assert second.counts(name) == {f"u{n}": 4 for n in range(5)}
        assert second.statuses()[name].state is QueryState.RUNNING


def test_a_process_that_lost_its_queries_takes_none_of_them_back(paused: ByHand, second: ByHand) -> None:
    before = epochs(second.broker)
    for name in NAMES:
        paused._queries[name].fail(QueryTakenOver(name, "another process"))
        with pytest.raises(QueryTakenOver):
            paused.retry(name)
    with pytest.raises(QueryTakenOver):
        paused.add(counting("three"))
    assert epochs(second.broker) == before


def test_a_process_that_lost_its_queries_leaves_their_books_alone_when_it_stops(paused: ByHand, second: ByHand) -> None:
    before = epochs(second.broker)
    paused.stop()
    assert epochs(second.broker) == before
    send(second.broker, 10)
    second.settle()
    for name in NAMES:
        assert second.counts(name) == {f"u{n}": 4 for n in range(5)}


def test_a_process_that_starts_again_after_it_gave_way_takes_the_queries_over_itself(
    paused: ByHand, second: ByHand, tmp_path: Path
) -> None:
    third = opened(tmp_path)
    assert isinstance(second.taken_over(), QueryTakenOver)
    assert third.taken_over() is None
    third.stop()

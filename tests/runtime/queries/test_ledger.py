"""The ledger: epochs, and commits that happen or do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from potok.errors import PotokError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.runtime.queries.ledger import Ledger
from potok.snapshots.ledger_view import read_entry
from potok.state.entry import Entry
from potok.state.offsets import Offsets


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker.shared(tmp_path)
    yield broker
    broker.close()


def started(broker: EmbeddedBroker) -> Ledger:
    ledger = Ledger(broker, "q")
    ledger.begin_epoch({}, shards=2)
    return ledger


def commit(ledger: Ledger) -> None:
    ledger.commit(replace(ledger.entry, batch=ledger.entry.batch + 1), [], {})


def test_a_query_that_never_ran_has_no_entry(broker: EmbeddedBroker) -> None:
    assert Ledger(broker, "q").is_new and Ledger(broker, "q").entry == Entry()
    assert read_entry(broker, "q") is None


def test_every_start_takes_the_next_epoch(broker: EmbeddedBroker) -> None:
    assert [started(broker).entry.epoch for _ in range(3)] == [1, 2, 3]
    assert not Ledger(broker, "q").is_new


def test_an_epoch_that_did_not_end_in_order_is_remembered_with_its_last_batch(broker: EmbeddedBroker) -> None:
    first = started(broker)
    commit(first)
    commit(first)
    assert started(broker).entry.ended == {1: 2}
    assert started(broker).entry.ended == {1: 2, 2: 2}


def test_an_epoch_that_ended_in_order_is_not(broker: EmbeddedBroker) -> None:
    first = started(broker)
    commit(first)
    first.end_epoch({})
    second = started(broker).entry
    assert (second.ended, second.clean, second.batch) == ({}, False, 1)


def test_a_commit_is_read_by_everybody(broker: EmbeddedBroker) -> None:
    ledger = started(broker)
    ledger.commit(replace(ledger.entry, batch=1, offsets=Offsets({"t": {0: 5}})), [], {"beside": b"it"})
    assert read_entry(broker, "q") == ledger.entry
    assert broker.get_metadata("beside") == b"it"


def test_a_driver_that_was_overtaken_can_neither_commit_nor_end(broker: EmbeddedBroker) -> None:
    overtaken = started(broker)
    current = started(broker)
    for attempt in (lambda: commit(overtaken), lambda: overtaken.end_epoch({}), lambda: overtaken.begin_epoch({})):
        with pytest.raises(PotokError):
            attempt()
    assert read_entry(broker, "q") == current.entry


def test_two_starts_at_once_do_not_share_an_epoch(broker: EmbeddedBroker) -> None:
    one, two = Ledger(broker, "q"), Ledger(broker, "q")
    one.begin_epoch({})
    with pytest.raises(PotokError):
        two.begin_epoch({})

"""A changed fold is built from the events next to the old one, and promoted."""

from __future__ import annotations

from pathlib import Path

import pytest

import potok
from patterns.aggregates.orders import (
    CreateOrder,
    Note,
    OrderCreated,
    OrderNoted,
    OrderPaid,
    PayOrder,
    program,
    results,
    send,
)
from potok.errors import QueryError
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.runtime.batches.in_process_executor import InProcessExecutor
from potok.runtime.operations.shadow import catch_up, start_shadow, swap, topics_read_ahead
from potok.settings import Settings
from potok.testing import TestDriver


@potok.aggregate("orders", events="order-events")
class CountedOrder:
    """The same events, folded to something else."""

    notes: int = 0
    status: str = "new"

    @potok.command
    def note(self, command: Note) -> OrderNoted:
        return OrderNoted(command.order_id, f"number {self.notes}")

    @potok.applies
    def created(self, event: OrderCreated) -> None:
        self.status = "created"

    @potok.applies
    def paid(self, event: OrderPaid) -> None:
        self.status = "paid"

    @potok.applies
    def noted(self, event: OrderNoted) -> None:
        self.notes += 1


def changed() -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("shop")
    builder.aggregate(CountedOrder)
    return builder


def promote(directory: Path) -> None:
    """As `potok run --shadow` and `potok promote` do, without Spark."""
    broker, settings = EmbeddedBroker.shared(directory), Settings(broker=f"file:{directory}", shards=2)
    topology = changed().build()
    start_shadow(topology, broker, settings, lambda _: InProcessExecutor(), until_end=True).wait()
    catch_up(topology, broker, settings, lambda _: InProcessExecutor()).wait()
    swap(broker, "shop", topics_read_ahead(topology))


@pytest.mark.parametrize("reads_back", [True, False])
def test_a_rebuilt_fold_continues_at_the_version_of_the_old_one(tmp_path: Path, reads_back: bool) -> None:
    foreign = {"event_id": "f", "event_type": "order.noted", "data": {"order_id": "o1", "note": "foreign"}}
    with TestDriver(program(), directory=tmp_path) as driver:
        send(driver, CreateOrder("o1", 5.0), command_id="create")
        driver.run()
        driver.send("order-events", foreign, "o1")
        send(driver, Note("o1", "n", 2), command_id="note")
        send(driver, PayOrder("o2"), "o2", command_id="rejected")
        # The events of the last batch may not have been read back.
        driver._round(None, more_to_come=False)
        if reads_back:
            driver.run()
        before = driver.table("orders").get("o1")
    assert before["version"] == 4
    promote(tmp_path)
    with TestDriver(changed(), directory=tmp_path) as driver:
        assert driver.table("orders").get("o1") == {"version": 4, "state": {"notes": 3, "status": "created"}}
        send(driver, Note("o1", "n"), expected_version=4)
        send(driver, CreateOrder("o1", 5.0), command_id="create")
        driver.run()
        *_, first, second = results(driver)
        assert (first.status, first.version, first.events[0]["data"]["note"]) == ("accepted", 5, "number 3")
        # A command that was accepted before stays accepted, though the new program does not have it.
        assert (second.status, second.command, second.version) == ("accepted", "CreateOrder", 1)
        history = driver.aggregate(CountedOrder).history("o1")
        assert [one.version for one in history] == [1, 2, 3, 4, 5]
        assert driver.dead_letters() == []


def test_a_shadow_that_has_not_read_all_events_is_not_promoted(tmp_path: Path) -> None:
    with TestDriver(program(), directory=tmp_path) as driver:
        send(driver, CreateOrder("o1", 5.0))
        driver._round(None, more_to_come=False)
    broker, settings = EmbeddedBroker.shared(tmp_path), Settings(broker=f"file:{tmp_path}", shards=2)
    topology = changed().build()
    start_shadow(topology, broker, settings, lambda _: InProcessExecutor(), until_end=True).wait()
    with pytest.raises(QueryError, match='the shadow of query "shop" is not at the offsets of the query'):
        swap(broker, "shop", topics_read_ahead(topology))

"""The history of aggregates, and their state as of a version or an instant."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import potok
from patterns.aggregates.orders import CreateOrder, Note, Order, PayOrder, program, send
from potok.errors import QueryError, TopologyError
from potok.testing import TestDriver


def noted(note: str) -> dict[str, object]:
    return {"event_id": note, "event_type": "order.noted", "data": {"order_id": "o1", "note": note}}


def note(driver: TestDriver, text: str, at: int = 0) -> None:
    value = {"command": "Note", "data": {"order_id": "o1", "note": text}}
    driver.send("orders-commands", value, "o1", timestamp=at)


def test_an_aggregate_is_read_as_of_any_version() -> None:
    with TestDriver(program()) as driver:
        send(driver, CreateOrder("o1", 10.0))
        send(driver, PayOrder("o1"))
        driver.run()
        orders = driver.aggregate(Order)
        found = [orders.get("o1", as_of=version) for version in (0, 1, 2)]
        assert found == [None, Order("created", 10.0), Order("paid", 10.0)]
        assert orders.get("o1") == Order("paid", 10.0) and orders.version("o1") == 2
        assert orders.get("nobody") is None and orders.history("nobody") == []
        with pytest.raises(QueryError, match='"o1" has version 2, and no version 3 yet'):
            orders.get("o1", as_of=3)


def test_an_aggregate_is_read_as_of_an_instant() -> None:
    with TestDriver(program()) as driver:
        for number in range(3):
            note(driver, "n", 1_000 * number)
        driver.run()
        at = datetime.fromtimestamp(1.5, UTC)
        found = driver.aggregate(Order).get("o1", as_of=at)
        assert found is not None and found.notes == ["n0", "n1"]


def test_history_lists_the_events_in_the_order_in_which_they_were_folded() -> None:
    with TestDriver(program()) as driver:
        note(driver, "a")
        driver.send("order-events", noted("foreign"), "o1", timestamp=10)
        note(driver, "b", 20)
        driver.run(batch_records=1)
        # Written before the next own event, and folded after it.
        driver.send("order-events", noted("late"), "o1", timestamp=40)
        note(driver, "c", 30)
        driver.run()
        found = driver.aggregate(Order).history("o1")
        assert [(one.version, one.event.note, one.own) for one in found] == [
            (1, "a0", True),
            (2, "foreign", False),
            (3, "b2", True),
            (4, "c3", True),
            (5, "late", False),
        ]
        state = driver.table("orders").get("o1")["state"]
        assert state["notes"] == [one.event.note for one in found]


def test_dead_letters_are_not_part_of_the_history() -> None:
    with TestDriver(program()) as driver:
        for text in ("a", "unfit", "b"):
            driver.send("order-events", noted(text), "o1")
        driver.send("order-events", b"broken", "o1")
        driver.run()
        assert [one.event.note for one in driver.aggregate(Order).history("o1")] == ["a", "b"]


def test_a_history_without_its_events_says_so() -> None:
    with TestDriver(program()) as driver:
        send(driver, Note("o1", "n", 3))
        driver.run()
        driver.broker.delete_topic("order-events")
        driver.broker.create_topic("order-events")
        with pytest.raises(QueryError, match='"o1" has version 3, but topic "order-events" has only 0 of its events'):
            driver.aggregate(Order).history("o1")


def test_aggregates_are_opened_by_the_url_of_their_log(tmp_path: Path) -> None:
    with TestDriver(program(), directory=tmp_path) as driver:
        send(driver, CreateOrder("o1", 10.0))
        driver.run()
    with potok.open_aggregate(f"file:{tmp_path}", Order, "shop") as orders:
        assert orders.get("o1") == Order("created", 10.0)


def test_a_topic_of_events_keeps_its_events_for_ever() -> None:
    with TestDriver(program(partitions=3)) as driver:
        config = driver.broker.describe_topic("order-events").config
        assert not config.expires and not config.compacted
        assert driver.broker.partitions("order-events") == driver.broker.partitions("orders-commands") == 3


def test_a_compacted_topic_of_events_is_refused(tmp_path: Path) -> None:
    with TestDriver(program(), directory=tmp_path) as driver:
        driver.broker.delete_topic("order-events")
        driver.broker.create_topic("order-events", cleanup_policy="compact")
        with pytest.raises(TopologyError, match='topic "order-events" is compacted') as found:
            driver.restart()
        assert "a topic that is not compacted" in found.value.hint

"""Events that others write to the topic of an aggregate."""

from __future__ import annotations

import pytest

from patterns.aggregates.orders import CreateOrder, PayOrder, program, results, send
from potok.testing import TestDriver

CREATED = {"event_id": "e1", "event_type": "order.created", "data": {"order_id": "o1", "amount": 5.0, "items": []}}


def noted(note: str) -> dict[str, object]:
    return {"event_id": note, "event_type": "order.noted", "data": {"order_id": "o1", "note": note}}


def test_an_event_of_another_writer_is_folded_and_counts_as_a_version() -> None:
    with TestDriver(program()) as driver:
        driver.send("order-events", CREATED, "o1")
        driver.run()
        assert driver.table("orders").get("o1")["version"] == 1
        send(driver, PayOrder("o1"), expected_version=1)
        driver.run()
        (result,) = results(driver)
        assert (result.status, result.version) == ("accepted", 2)


def test_events_of_other_writers_can_be_dead_letters() -> None:
    with TestDriver(program(foreign="dead_letter")) as driver:
        driver.send("order-events", CREATED, "o1")
        send(driver, CreateOrder("o1", 7.0))
        driver.run()
        (letter,) = driver.dead_letters()
        assert 'the event was not written by aggregate "orders"' in letter.error
        assert driver.table("orders").get("o1")["state"]["amount"] == 7.0


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"event_id": "x", "event_type": "order.lost", "data": {}}, 'unknown event type "order.lost"'),
        ({"event_id": "x", "event_type": "order.paid", "event_version": "7.0", "data": {}}, "has version 7"),
        ({"event_id": "x", "event_type": "order.paid", "data": {}}, "data of order.paid: Object missing required"),
        ({"no": "event"}, 'it has no "event_type"'),
        (b"broken", "the envelope is not JSON"),
        (None, "a record without a value is not an event"),
        (noted("unfit"), "this note does not fit"),
    ],
)
def test_an_event_that_cannot_be_folded_is_a_dead_letter(value: object, reason: str) -> None:
    with TestDriver(program()) as driver:
        driver.send("order-events", noted("a"), "o1")
        driver.send("order-events", value, "o1")
        driver.send("order-events", noted("b"), "o1")
        driver.run()
        (letter,) = driver.dead_letters()
        assert reason in letter.error and (letter.topic, letter.offset) == ("order-events", 1)
        assert driver.table("orders").get("o1")["state"]["notes"] == ["a", "b"]
        assert driver.table("orders").get("o1")["version"] == 2

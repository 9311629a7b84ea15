"""Fold events with the unchanged class of a program."""

from __future__ import annotations

from typing import Any

import pytest

import potok
from potok.errors import TopologyError
from potok.testing import TestDriver


class OrderAggregate:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {}

    def apply(self, event: dict[str, Any]) -> None:
        self.events.append(event)

        if event["type"] == "OrderCreated":
            self.state = {
                "id": event["order_id"],
                "user_id": event["user_id"],
                "items": event["items"],
                "status": "created",
            }
        elif event["type"] == "OrderPaid":
            self.state["status"] = "paid"
            self.state["paid_at"] = event["timestamp"]
        elif event["type"] == "OrderShipped":
            self.state["status"] = "shipped"
            self.state["tracking"] = event["tracking_number"]

    def get_state(self) -> dict[str, Any]:
        return self.state


CREATED = {"type": "OrderCreated", "order_id": "o1", "user_id": "u1", "items": ["a", "b"]}
PAID = {"type": "OrderPaid", "order_id": "o1", "timestamp": "2024-01-15T10:30:00Z"}
SHIPPED = {"type": "OrderShipped", "order_id": "o1", "tracking_number": "t-7"}
STATE = {
    "id": "o1",
    "user_id": "u1",
    "items": ["a", "b"],
    "status": "shipped",
    "paid_at": "2024-01-15T10:30:00Z",
    "tracking": "t-7",
}


def program(cls: Any = OrderAggregate, **options: Any) -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("shop")
    builder.fold(cls, "order-events", **options)
    return builder


@pytest.mark.parametrize("batch_records", [1, 2, None])
def test_the_class_of_the_seeds_runs_unchanged(batch_records: int | None) -> None:
    with TestDriver(program()) as driver:
        for event in (CREATED, PAID, SHIPPED):
            driver.send("order-events", event, "o1")
        driver.run(batch_records)
        driver.restart()
        assert driver.table("OrderAggregate").all() == {"o1": STATE}


def test_an_envelope_becomes_one_flat_event() -> None:
    with TestDriver(program(by="order_id", name="orders")) as driver:
        names = ("type", "timestamp")
        for number, event in enumerate((CREATED, PAID, SHIPPED)):
            data = {name: item for name, item in event.items() if name not in names}
            envelopes = (
                {"event_id": "e", "event_type": event["type"], "data": data},
                {"specversion": "1.0", "id": "e", "type": event["type"], "time": event.get("timestamp"), "data": data},
            )
            if number < 2:
                driver.send("order-events", envelopes[number])
            else:
                driver.send("order-events", data, headers={"ce_type": str(event["type"]).encode()})
        driver.run()
        assert driver.dead_letters() == []
        assert driver.table("orders").all() == {"o1": STATE}


def test_the_table_of_a_fold_feeds_later_steps() -> None:
    builder = potok.StreamsBuilder("shop")
    orders = builder.fold(OrderAggregate, "order-events")
    orders.to_stream().map_values(lambda v: v["status"]).to("statuses")
    with TestDriver(builder) as driver:
        for event in (CREATED, PAID, SHIPPED):
            driver.send("order-events", event, "o1")
            driver.run()
        assert [record.value for record in driver.read("statuses")] == ["created", "paid", "shipped"]


def test_an_event_that_cannot_be_applied_is_a_dead_letter_and_leaves_the_state() -> None:
    with TestDriver(program()) as driver:
        for event in (CREATED, {"no": "type"}, 7, b"broken", PAID, SHIPPED):
            driver.send("order-events", event, "o1")
        driver.run()
        assert sorted(letter.offset for letter in driver.dead_letters()) == [1, 2, 3]
        assert driver.table("OrderAggregate").all() == {"o1": STATE}


class WithoutState:
    def apply(self, event: Any) -> None: ...


class WithArguments(OrderAggregate):
    def __init__(self, order_id: str) -> None: ...


@pytest.mark.parametrize(
    ("cls", "text"),
    [
        (WithoutState, "WithoutState has no method get_state(self)"),
        (WithArguments, "WithArguments cannot be created without arguments"),
        (7, "7 is not a class"),
    ],
)
def test_a_class_that_cannot_fold_is_refused(cls: Any, text: str) -> None:
    with pytest.raises(TopologyError) as found:
        program(cls)
    assert text in str(found.value) and "hint: write class Order" in str(found.value)

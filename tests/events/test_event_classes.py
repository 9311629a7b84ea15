"""Lambdas see the events of a stream as instances of their classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import potok
from potok.errors import TopologyError
from potok.testing import TestDriver


@potok.event("class.created")
@dataclass
class Created:
    order_id: str
    amount: float

    def is_large(self) -> bool:
        return self.amount > 100


@potok.event("class.paid")
@dataclass
class Paid:
    order_id: str
    method: str = "card"

    def __post_init__(self) -> None:
        if not self.method:
            raise ValueError("a payment needs a method")


@potok.event("class.closed")
@dataclass
class Closed:
    pass


def sent(kind: str, data: Any) -> dict[str, Any]:
    return {"event_id": "e1", "event_type": kind, "event_version": "1.0", "source": "s", "data": data}


def describe(event: Any) -> str:
    if isinstance(event, Created):
        return f"created {event.order_id} {event.is_large()}"
    if isinstance(event, Paid):
        return f"paid {event.order_id} by {event.method}"
    return f"{type(event).__name__} of {event['event_type']}"


def run(*events: dict[str, Any], types: list[type], spark: bool = False) -> tuple[list[Any], list[str]]:
    builder = potok.StreamsBuilder("shop")
    builder.events("orders", types=types).map_values(describe).to("out")
    with TestDriver(builder, spark=spark) as driver:
        for event in events:
            driver.send("orders", event, key="k")
        driver.run()
        return [record.value for record in driver.read("out")], [letter.error for letter in driver.dead_letters()]


def test_each_event_of_a_stream_of_several_types_is_an_instance_of_its_class() -> None:
    created, paid = sent("class.created", {"order_id": "a", "amount": 120}), sent("class.paid", {"order_id": "b"})
    assert run(created, paid, types=[Created, Paid]) == (["created a True", "paid b by card"], [])


def test_an_event_of_the_only_type_is_an_instance_of_its_class() -> None:
    values, letters = run(sent("class.created", {"order_id": "a", "amount": 1}), types=[Created])
    assert (values, letters) == (["created a False"], [])


def test_an_event_class_may_have_no_fields() -> None:
    closed = sent("class.closed", None)
    assert run(closed, types=[Created, Closed]) == (["Closed of class.closed"], [])


def test_an_event_that_its_class_rejects_is_a_dead_letter() -> None:
    values, (letter,) = run(sent("class.paid", {"order_id": "b", "method": ""}), types=[Created, Paid])
    assert values == [] and "data of class.paid: ValueError: a payment needs a method" in letter


def test_an_instance_of_an_event_class_is_written_as_its_type() -> None:
    def pay(event: Any) -> Any:
        return Paid(event.order_id, "cash") if event.amount > 10 else Created(event.order_id, 0.0)

    builder = potok.StreamsBuilder("shop")
    builder.events("orders", types=[Created]).map_values(pay).to("out", envelope="cloudevents", event=[Created, Paid])
    with TestDriver(builder) as driver:
        for amount in (5, 50):
            driver.send("orders", sent("class.created", {"order_id": "a", "amount": amount}), key="k")
        driver.run()
        assert driver.dead_letters() == []
        found = [(record.value["type"], record.value["data"]) for record in driver.read("out")]
    assert found == [
        ("class.created", {"order_id": "a", "amount": 0.0}),
        ("class.paid", {"order_id": "a", "method": "cash"}),
    ]


def test_a_function_may_return_the_event_itself_and_plain_values_keep_its_type() -> None:
    def large(event: Created) -> Created:
        return event if event.is_large() else Created(event.order_id, 101.0)

    builder = potok.StreamsBuilder("shop")
    events = builder.events("orders", types=[Created]).map_values(large)
    events.to("out", envelope="cloudevents", event=Created)
    events.to("plain")
    with TestDriver(builder) as driver:
        for amount in (5, 500):
            driver.send("orders", sent("class.created", {"order_id": "a", "amount": amount}), key="k")
        driver.run()
        assert driver.dead_letters() == []
        assert [record.value["data"]["amount"] for record in driver.read("out")] == [101.0, 500.0]
        assert [record.value for record in driver.read("plain")] == [
            {"event_type": "class.created", "order_id": "a", "amount": 101.0},
            {"event_type": "class.created", "order_id": "a", "amount": 500.0},
        ]


def test_two_upcasts_of_one_version_are_refused() -> None:
    def first(data: dict[str, Any]) -> Any:
        return data

    def second(data: dict[str, Any]) -> Any:
        return data

    potok.upcast("class.twice", from_version=1)(first)
    with pytest.raises(TopologyError, match=r'"class.twice" has two upcasts from version 1'):
        potok.upcast("class.twice", from_version=1)(second)


@pytest.mark.spark
def test_a_worker_of_spark_creates_the_same_instances(spark: Any) -> None:
    created, paid = sent("class.created", {"order_id": "a", "amount": 120}), sent("class.paid", {"order_id": "b"})
    assert run(created, paid, types=[Created, Paid], spark=True) == (["created a True", "paid b by card"], [])

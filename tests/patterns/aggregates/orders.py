"""The order of the documentation, as an aggregate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import potok
from potok.patterns.aggregates.messages import Result, command_record, read_result
from potok.testing import TestDriver


@potok.event("order.created")
@dataclass
class OrderCreated:
    order_id: str
    amount: float
    items: list[str] = field(default_factory=list)


@potok.event("order.paid")
@dataclass
class OrderPaid:
    order_id: str


@potok.event("order.noted")
@dataclass
class OrderNoted:
    order_id: str
    note: str


@dataclass
class CreateOrder:
    order_id: str
    amount: float
    items: list[str] = field(default_factory=list)


@dataclass
class PayOrder:
    order_id: str


@dataclass
class Note:
    order_id: str
    note: str
    times: int = 1


@potok.aggregate("orders", events="order-events")
class Order:
    status: str = "new"
    amount: float = 0.0
    items: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @potok.command
    def create(self, command: CreateOrder) -> Iterator[OrderCreated]:
        """Create an order."""
        if self.status != "new":
            raise potok.RejectedError("the order exists")
        yield OrderCreated(command.order_id, command.amount, command.items)

    @potok.command
    def pay(self, command: PayOrder) -> Iterator[OrderPaid]:
        if self.status != "created":
            raise potok.RejectedError("only a created order can be paid")
        yield OrderPaid(command.order_id)

    @potok.command
    def note(self, command: Note) -> Iterator[OrderNoted]:
        for number in range(command.times):
            if command.note == "boom" and number == 1:
                raise ZeroDivisionError("boom")
            yield OrderNoted(command.order_id, f"{command.note}{len(self.notes)}")

    @potok.applies
    def created(self, event: OrderCreated) -> None:
        self.status, self.amount, self.items = "created", event.amount, event.items

    @potok.applies
    def paid(self, event: OrderPaid) -> None:
        self.status = "paid"

    @potok.applies
    def noted(self, event: OrderNoted) -> None:
        if event.note == "unfit":
            raise ValueError("this note does not fit")
        self.notes.append(event.note)


def program(**options: Any) -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("shop")
    builder.aggregate(Order, **options)
    return builder


def send(driver: TestDriver, command: object, key: str = "o1", **options: Any) -> None:
    record = command_record(key, type(command).__name__, vars(command), **options)
    driver.send("orders-commands", record.value, key, headers=record.headers)


def results(driver: TestDriver, key: str = "o1") -> list[Result]:
    found = driver.read("orders-results")
    return [read_result(potok_bytes(one.value)) for one in found if one.key == key]


def potok_bytes(value: Any) -> bytes:
    import orjson

    return value if isinstance(value, bytes) else orjson.dumps(value)

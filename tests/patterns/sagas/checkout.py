"""The checkout of the documentation: payment, then stock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import potok
from potok.testing import TestDriver
from potok.testing.outputs import OutputRecord


@potok.event("order.created")
@dataclass
class OrderCreated:
    order_id: str
    amount: float
    item: str


@potok.event("payment.processed")
@dataclass
class PaymentProcessed:
    order_id: str
    payment_id: str


@potok.event("payment.failed")
@dataclass
class PaymentFailed:
    order_id: str
    reason: str


@potok.event("payment.refunded")
@dataclass
class PaymentRefunded:
    order_id: str


@potok.event("inventory.reserved")
@dataclass
class InventoryReserved:
    order_id: str


@potok.event("inventory.failed")
@dataclass
class InventoryFailed:
    order_id: str


@potok.event("order.completed")
@dataclass
class OrderCompleted:
    order_id: str
    payment_id: str


@potok.event("order.cancelled")
@dataclass
class OrderCancelled:
    order_id: str


@dataclass
class ProcessPayment:
    order_id: str
    amount: float


@dataclass
class RefundPayment:
    order_id: str
    amount: float


@dataclass
class ReserveItems:
    order_id: str
    item: str


@dataclass
class ReleaseItems:
    order_id: str


@potok.saga("checkout", by="order_id", starts=OrderCreated)
class Checkout:
    payment = potok.step(
        send=ProcessPayment,
        ok=PaymentProcessed,
        failed=PaymentFailed,
        undo=RefundPayment,
        undone=PaymentRefunded,
        timeout="15 min",
        retry=potok.retry(2, "10 s"),
    )
    stock = potok.step(send=ReserveItems, ok=InventoryReserved, failed=InventoryFailed, undo=ReleaseItems)
    done = potok.emit(OrderCompleted)
    aborted = potok.emit(OrderCancelled)


def program(saga: Any = Checkout, **options: Any) -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("shop")
    builder.saga(saga, events="order-events", commands="commands", emits="out", **options)
    return builder


def event(kind: str, order: str = "o1", number: int = 1, **data: Any) -> dict[str, Any]:
    return {
        "event_id": f"{kind}-{order}-{number}",
        "event_type": kind,
        "correlation_id": f"request-{order}",
        "data": {"order_id": order, **data},
    }


CREATED = event("order.created", amount=5.0, item="book")
PAID = event("payment.processed", payment_id="p1")
RESERVED = event("inventory.reserved")
NO_STOCK = event("inventory.failed")
REFUSED = event("payment.failed", reason="no money")
REFUNDED = event("payment.refunded")


def play(driver: TestDriver, *events: dict[str, Any]) -> None:
    for one in events:
        driver.send("order-events", one, key=one["data"]["order_id"])
        driver.run()


def sent(driver: TestDriver, topic: str = "commands") -> list[str]:
    return [record.value["type"] for record in driver.read(topic)]


def state(driver: TestDriver, order: str = "o1", saga: str = "checkout") -> str | None:
    found = driver.table(f"{saga}.instances").get(order)
    return None if found is None else found["state"]


def key_of(record: OutputRecord) -> str:
    """The idempotency key of a command."""
    found = dict(record.headers)["idempotency-key"]
    assert found is not None
    return found.decode()

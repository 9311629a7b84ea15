"""A shop: orders as an event-sourced aggregate, a saga that pays and reserves, and a page that reads its own writes.

    python examples/checkout/app.py                  # places a few orders and prints what became of them
    python examples/checkout/app.py serve            # keeps running: http://127.0.0.1:8088

Three queries share one log. `orders` decides commands and writes events; `checkout` follows the events and sends
commands to the services; `shop` holds the services and the read model.
"""

import json
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import potok

STOCK = {"lamp": 3, "chair": 2, "table": 1}
PRICES = {"lamp": 40.0, "chair": 90.0, "table": 450.0}
CARD_LIMIT = 500.0


@potok.event("order.placed")
@dataclass
class OrderPlaced:
    order_id: str
    customer: str
    item: str
    quantity: int
    amount: float


@potok.event("order.completed")
@dataclass
class OrderCompleted:
    order_id: str
    customer: str
    amount: float


@potok.event("order.cancelled")
@dataclass
class OrderCancelled:
    order_id: str
    customer: str


@potok.event("order.rated")
@dataclass
class OrderRated:
    order_id: str
    customer: str
    stars: int


@potok.event("payment.processed")
@dataclass
class PaymentProcessed:
    order_id: str


@potok.event("payment.failed")
@dataclass
class PaymentFailed:
    order_id: str
    reason: str


@potok.event("payment.refunded")
@dataclass
class PaymentRefunded:
    order_id: str


@potok.event("items.reserved")
@dataclass
class ItemsReserved:
    order_id: str


@potok.event("items.failed")
@dataclass
class ItemsFailed:
    order_id: str
    reason: str


# Orders: commands are decided here, one after the other for each order.


@dataclass
class PlaceOrder:
    order_id: str
    customer: str
    item: str
    quantity: int


@dataclass
class CompleteOrder:
    order_id: str


@dataclass
class CancelOrder:
    order_id: str


@dataclass
class RateOrder:
    order_id: str
    stars: int


@potok.aggregate("orders", events="order-events")
class Order:
    customer: str = ""
    status: str = ""
    amount: float = 0.0
    stars: int = 0

    @potok.command(creates=True)
    def place(self, command: PlaceOrder) -> Iterator[OrderPlaced]:
        """Place an order."""
        if command.item not in PRICES or command.quantity < 1:
            raise potok.RejectedError(f"there is no {command.item}")
        amount = PRICES[command.item] * command.quantity
        yield OrderPlaced(command.order_id, command.customer, command.item, command.quantity, amount)

    @potok.command
    def complete(self, command: CompleteOrder) -> Iterator[OrderCompleted]:
        """Complete an order that is paid and reserved."""
        yield OrderCompleted(command.order_id, self.customer, self.amount)

    @potok.command
    def cancel(self, command: CancelOrder) -> Iterator[OrderCancelled]:
        """Cancel an order that cannot be paid or reserved."""
        yield OrderCancelled(command.order_id, self.customer)

    @potok.command
    def rate(self, command: RateOrder) -> Iterator[OrderRated]:
        """Rate a completed order."""
        if self.status != "completed":
            raise potok.RejectedError("only a completed order can be rated")
        yield OrderRated(command.order_id, self.customer, command.stars)

    @potok.applies
    def placed(self, event: OrderPlaced) -> None:
        self.customer, self.status, self.amount = event.customer, "placed", event.amount

    @potok.applies
    def completed(self, event: OrderCompleted) -> None:
        self.status = "completed"

    @potok.applies
    def cancelled(self, event: OrderCancelled) -> None:
        self.status = "cancelled"

    @potok.applies
    def rated(self, event: OrderRated) -> None:
        self.stars = event.stars


orders = potok.StreamsBuilder("orders")
orders.aggregate(Order)


# Checkout: pay, reserve, and pay back if there is nothing to reserve.


@potok.event("payment.process")
@dataclass
class ProcessPayment:
    order_id: str
    amount: float


@potok.event("payment.refund")
@dataclass
class RefundPayment:
    order_id: str
    amount: float


@potok.event("items.reserve")
@dataclass
class ReserveItems:
    order_id: str
    item: str
    quantity: int


@potok.event("items.release")
@dataclass
class ReleaseItems:
    order_id: str
    item: str
    quantity: int


@potok.event("checkout.done")
@dataclass
class CheckoutDone:
    order_id: str


@potok.event("checkout.aborted")
@dataclass
class CheckoutAborted:
    order_id: str


@potok.saga("checkout", by="order_id", starts=OrderPlaced)
class Checkout:
    payment = potok.step(
        send=ProcessPayment,
        ok=PaymentProcessed,
        failed=PaymentFailed,
        undo=RefundPayment,
        undone=PaymentRefunded,
        timeout="15 min",
    )
    stock = potok.step(send=ReserveItems, ok=ItemsReserved, failed=ItemsFailed, undo=ReleaseItems)
    done = potok.emit(CheckoutDone)
    aborted = potok.emit(CheckoutAborted)


checkout = potok.StreamsBuilder("checkout")
checkout.saga(Checkout, events=["order-events", "service-events"], commands="service-commands", emits="outcomes")


# Shop: the services, and the read model.


def payment(command: Any) -> PaymentProcessed | PaymentFailed | PaymentRefunded:
    if command["event_type"] == "payment.refund":
        return PaymentRefunded(command["order_id"])
    if command["amount"] > CARD_LIMIT:
        return PaymentFailed(command["order_id"], f"the card allows {CARD_LIMIT:g}")
    return PaymentProcessed(command["order_id"])


class Warehouse(potok.Processor):
    """The stock of one item."""

    taken = potok.value_store(default=0)

    def process(self, key: Any, value: Any, ctx: potok.ProcessorContext) -> None:
        if value["event_type"] == "items.release":
            self.taken.set(self.taken.get() - value["quantity"])
        elif self.taken.get() + value["quantity"] > STOCK[key]:
            ctx.forward(ItemsFailed(value["order_id"], f"{STOCK[key] - self.taken.get()} left"), to="failed")
        else:
            self.taken.set(self.taken.get() + value["quantity"])
            ctx.forward(ItemsReserved(value["order_id"]), to="reserved")


def seen(event: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Fold one event of an order into the page of its customer."""
    order = dict(known["orders"].get(event["order_id"], {}))
    kind = event["event_type"]
    if kind == "order.placed":
        order |= {"item": event["item"], "quantity": event["quantity"], "amount": event["amount"], "status": "placed"}
    elif kind == "order.rated":
        order["stars"] = event["stars"]
    else:
        order["status"] = kind.removeprefix("order.")
    spent = known["spent"] + (event["amount"] if kind == "order.completed" else 0.0)
    return {"spent": spent, "orders": {**known["orders"], event["order_id"]: order}}


shop = potok.StreamsBuilder("shop")
commands = shop.events("service-commands", types=[ProcessPayment, RefundPayment, ReserveItems, ReleaseItems])
payments = commands.filter(lambda c: c["event_type"].startswith("payment."))
payments.map_values(payment).to(
    "service-events", envelope="cloudevents", event=[PaymentProcessed, PaymentFailed, PaymentRefunded]
)
reservations = commands.filter(lambda c: c["event_type"].startswith("items.")).select_key("item")
stock = reservations.process(Warehouse, name="stock", outputs={"reserved": ItemsReserved, "failed": ItemsFailed})
stock["reserved"].to("service-events", envelope="cloudevents", event=ItemsReserved)
stock["failed"].to("service-events", envelope="cloudevents", event=ItemsFailed)

ENDS = {"checkout.done": "CompleteOrder", "checkout.aborted": "CancelOrder"}
outcomes = shop.events("outcomes", types=[CheckoutDone, CheckoutAborted])
outcomes.map(lambda e: (e["order_id"], {"command": ENDS[e["event_type"]], "data": {"order_id": e["order_id"]}})).to(
    "orders-commands"
)

events = shop.events("order-events", types=[OrderPlaced, OrderCompleted, OrderCancelled, OrderRated])
events.group_by("customer").aggregate({"spent": 0.0, "orders": {}}, seen, name="customers")


QUERIES = (orders, checkout, shop)
NAMES = ("orders", "checkout", "shop")
PAGE = Path(__file__).parent / "page"

SAMPLE = (
    PlaceOrder("ord_1", "ann", "lamp", 2),
    PlaceOrder("ord_2", "ann", "table", 2),
    PlaceOrder("ord_3", "bob", "lamp", 2),
)


def call(url: str, body: dict[str, Any] | None = None, **headers: str) -> tuple[Any, str]:
    """Return the response and the position of a write."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as response:
        return json.load(response), response.headers.get("Potok-Position", "")


def place(url: str, order: PlaceOrder) -> dict[str, Any]:
    """Place an order, and return its customer as the read model has it from then on."""
    _, position = call(
        f"{url}/commands/orders/{order.order_id}/PlaceOrder", vars(order), **{"Idempotency-Key": order.order_id}
    )
    row, _ = call(f"{url}/tables/customers/{order.customer}", None, **{"Potok-Wait-For": position, "Prefer": "wait=60"})
    return row["VALUE"]


def is_open(url: str, customer: str) -> bool:
    found, _ = call(f"{url}/tables/customers/{customer}")
    return any(order["status"] == "placed" for order in found["VALUE"]["orders"].values())


@contextmanager
def running(log: str, port: int) -> Iterator[str]:
    """Run the three queries and the server, and yield its address."""
    with ExitStack() as stack:
        for query in QUERIES:
            stack.enter_context(potok.start(query, broker=log))
        yield stack.enter_context(potok.serve(log, queries=NAMES, port=port, files={"/": PAGE})).url


def main() -> None:
    """Place the sample in an empty shop, one order after the other, and print what became of each."""
    with TemporaryDirectory() as log, running(log, 0) as url:
        for order in SAMPLE:
            assert order.order_id in place(url, order)["orders"], "a read includes one's own writes"
            while is_open(url, order.customer):
                time.sleep(0.05)
        for customer in ("ann", "bob"):
            for order_id, order in call(f"{url}/tables/customers/{customer}")[0]["VALUE"]["orders"].items():
                steps = call(f"{url}/sagas/checkout/{order_id}")[0]["state"]
                print(customer, order_id, f"{order['quantity']} x {order['item']}", order["status"], f"({steps})")


def serve() -> None:
    with running("./data", 8088) as url:
        print(f"open {url}; Ctrl-C stops")
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()

"""Events that are upcast, split, encoded again, folded and watched, in a process that gets killed; and what plain
Python says of them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import potok
from potok import StreamsBuilder
from potok.log.broker import Broker
from potok.records.log_record import LogRecord
from potok.testing.outputs import read_dead_letters, read_outputs
from tests.kill import without_spark
from tests.kill.answer import same
from tests.oracle.events import event_id

RECORDS = 3_000
ORDERS = 400
QUERY = "events-query"


@potok.event("kill.ordered", version=2)
@dataclass
class Ordered:
    order_id: str
    amount: int


@potok.event("kill.paid")
@dataclass
class Paid:
    order_id: str


@potok.event("kill.receipt")
@dataclass
class Receipt:
    order_id: str
    amount: int


@potok.upcast("kill.ordered", from_version=1)
def ordered_1(data: dict[str, Any]) -> Any:
    return [{"order_id": data["id"], "amount": amount} for amount in data["amounts"]]


class Account:
    """A plain class, as `fold` takes it."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def apply(self, event: dict[str, Any]) -> None:
        self.seen.append(event["number"])

    def get_state(self) -> dict[str, Any]:
        return {"count": len(self.seen), "last": self.seen[-1]}


@potok.choreography("orders", by="order_id", starts=Ordered)
class Orders:
    payment = potok.step(ok=Paid)


def build(prefix: str = "") -> StreamsBuilder:
    builder = StreamsBuilder(QUERY)
    orders = builder.events("order-events", types=[Ordered])
    orders.map_values(lambda e: Receipt(e.order_id, e.amount)).to("receipts", envelope="cloudevents", event=Receipt)
    builder.saga(Orders, events=["watched"])
    builder.fold(Account, "account-events", name="accounts")
    return builder


def records() -> dict[str, list[LogRecord]]:
    """Return the records of each topic; each seventh order has the first version, and some are no events."""
    found: dict[str, list[LogRecord]] = {"order-events": [], "watched": [], "account-events": []}
    for number in range(RECORDS):
        order = f"o{number * number % ORDERS}"
        first = {"id": order, "amounts": [number, 1][: number % 3]}
        version, data = (1, first) if number % 7 == 0 else (2, {"order_id": order, "amount": number})
        _add(found["order-events"], order, number, "kill.ordered", version, data if number % 31 else {})
        watched = "kill.paid" if number % 2 else "kill.ordered"
        _add(found["watched"], order, number, watched, 2 - number % 2, {"order_id": order, "amount": 1})
        _add(found["account-events"], f"a{number % 50}", number, "kill.noted", 1, {"number": number})
    return found


def _add(records: list[LogRecord], key: str, number: int, kind: str, version: int, data: dict[str, Any]) -> None:
    value = {"event_id": f"e{number}", "event_type": kind, "event_version": str(version), "data": data}
    records.append(LogRecord(key.encode(), json.dumps(value).encode(), 1_000 + number))


def check(broker: Broker) -> None:
    """Compare receipts and their ids, the view of the orders, the accounts and the dead letters."""
    receipts: Counter[Any] = Counter()
    bad = 0
    for partition, end in broker.end_offsets("order-events").items():
        for batch in broker.read("order-events", partition, 0, end):
            for row in batch.to_pylist():
                event = json.loads(row["value"])
                data = event["data"]
                bad += not data
                amounts = data.get("amounts", [data["amount"]] if "amount" in data else [])
                for index, amount in enumerate(amounts):
                    id_ = event_id(QUERY, "receipts#0", "order-events", partition, row["offset"], row["key"], index)
                    receipts[id_, event["event_id"], row["key"].decode(), amount] += 1
    found = Counter(
        (one.value["id"], one.value["causationid"], one.value["data"]["order_id"], one.value["data"]["amount"])
        for one in read_outputs(broker, "receipts")
    )
    same("receipts", found, receipts)
    assert bad
    assert len(list(read_dead_letters(broker, f"{QUERY}-dead-letters"))) == bad
    kinds: dict[str, set[int]] = {}
    for number in range(RECORDS):
        kinds.setdefault(f"o{number * number % ORDERS}", set()).add(number % 2)
    states = {order: "completed" if len(seen) == 2 else "running" for order, seen in kinds.items()}
    tables = potok.open_tables(broker.url, QUERY)
    same("orders", {key: row["state"] for key, row in tables["orders.instances"].all().items()}, states)
    last = {f"a{number % 50}": number for number in range(RECORDS)}
    expected = {account: {"count": RECORDS // 50, "last": number} for account, number in last.items()}
    same("accounts", tables["accounts"].all(), expected)


if __name__ == "__main__":
    without_spark.main(sys.argv[1], int(sys.argv[2]), "", build)

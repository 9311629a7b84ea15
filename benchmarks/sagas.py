"""Sagas: a checkout from its order to the record that says it is done, and many running instances asked over HTTP."""

from __future__ import annotations

import http.client
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import potok
from benchmarks.bench import Bench, Row, console
from benchmarks.measure import wait_for_quiet
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord

INSTANCES, BATCH = 100_000, 20_000
READS = 400
READ_MS, HOPS_MS = 20.0, 700.0
PER_SECOND, WARM_UP, SECONDS = 5, 10, 30
LOOK_S = 0.002
PATIENCE_S = 300.0


@potok.event("order.created")
@dataclass
class OrderCreated:
    order_id: str
    amount: float


@potok.event("payment.processed")
@dataclass
class PaymentProcessed:
    order_id: str


@potok.event("items.reserved")
@dataclass
class ItemsReserved:
    order_id: str


@potok.event("order.completed")
@dataclass
class OrderCompleted:
    order_id: str


@potok.event("payment.process")
@dataclass
class ProcessPayment:
    order_id: str
    amount: float


@potok.event("items.reserve")
@dataclass
class ReserveItems:
    order_id: str


@potok.event("payment.refund")
@dataclass
class RefundPayment:
    order_id: str


@potok.saga("checkout", by="order_id", starts=OrderCreated)
class Checkout:
    payment = potok.step(send=ProcessPayment, ok=PaymentProcessed, undo=RefundPayment, timeout="15 min")
    stock = potok.step(send=ReserveItems, ok=ItemsReserved, timeout="15 min")
    done = potok.emit(OrderCompleted)


def checkout() -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("checkout")
    builder.saga(Checkout, events=["orders", "answers"], commands="commands", emits="outcomes")
    return builder


def services() -> potok.StreamsBuilder:
    """The payment and the stock: each answers its command at once."""
    builder = potok.StreamsBuilder("services")
    commands = builder.events("commands", types=[ProcessPayment, ReserveItems])
    payments = commands.filter(lambda c: c["event_type"] == "payment.process")
    payments.map_values(lambda c: PaymentProcessed(c["order_id"])).to(
        "answers", envelope="cloudevents", event=PaymentProcessed
    )
    reservations = commands.filter(lambda c: c["event_type"] == "items.reserve")
    reservations.map_values(lambda c: ItemsReserved(c["order_id"])).to(
        "answers", envelope="cloudevents", event=ItemsReserved
    )
    return builder


def shop() -> potok.StreamsBuilder:
    builder = potok.StreamsBuilder("shop")
    builder.events("outcomes", types=[OrderCompleted]).map_values(lambda e: {"status": "completed"}).to("done")
    return builder


def hops(bench: Bench) -> Row:
    """Saga, payment, saga, stock, saga, shop: six queries' turns, one after the other."""
    wait_for_quiet()
    console.print("[dim]measuring checkouts[/]")
    url = f"file:{bench.directory / 'checkout-log'}"
    broker = open_broker(url)
    for topic in ("orders", "answers", "commands", "outcomes", "done", "checkout-control"):
        broker.create_topic(topic, 1)
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.sagas", "run", url])
    try:
        found = statistics.median(_checkouts(broker))
    finally:
        process.terminate()
        process.wait(60)
        broker.close()
    what = f"a checkout of 6 hops at {PER_SECOND}/s on the embedded log, p50"
    return Row(what, found, HOPS_MS, "ms", 1.0, smaller_is_better=True, tries=[found / HOPS_MS])


def _order(order: str) -> LogRecord:
    value = {"event_id": order, "event_type": "order.created", "data": {"order_id": order, "amount": 5.0}}
    return LogRecord(order.encode(), json.dumps(value).encode())


def _checkouts(broker: Broker) -> list[float]:
    sent: dict[str, float] = {}
    found: dict[str, float] = {}
    ended = threading.Event()

    def receive() -> None:
        seen = 0
        while not ended.wait(LOOK_S):
            end = broker.end_offsets("done")[0]
            for batch in broker.read("done", 0, seen, end) if end > seen else ():
                at = time.perf_counter()
                for key in batch.column("key").to_pylist():
                    found.setdefault(key.decode(), at)
            seen = end

    def send(order: str) -> None:
        sent[order] = time.perf_counter()
        broker.append("orders", [_order(order)])

    receiver = threading.Thread(target=receive)
    receiver.start()
    try:
        send("first")
        _wait(lambda: bool(found))
        began = time.perf_counter()
        for number in range((WARM_UP + SECONDS) * PER_SECOND):
            time.sleep(max(0.0, began + number / PER_SECOND - time.perf_counter()))
            send(f"order-{number}")
        _wait(lambda: len(found) == len(sent))
    finally:
        ended.set()
        receiver.join()
    wanted = [f"order-{number}" for number in range(WARM_UP * PER_SECOND, (WARM_UP + SECONDS) * PER_SECOND)]
    return [(found[order] - sent[order]) * 1000 for order in wanted]


def _wait(happened: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        if time.monotonic() > deadline:
            raise RuntimeError("the checkouts never came to an end")
        time.sleep(0.05)


def listing(bench: Bench) -> Row:
    return _reads(bench, "list", lambda: "/sagas/checkout?state=running&limit=100")


def getting(bench: Bench) -> Row:
    return _reads(bench, "get", lambda: f"/sagas/checkout/order-{random.randrange(INSTANCES)}")


def _reads(bench: Bench, name: str, path: Any) -> Row:
    directory = bench.made("running-sagas", _fill)
    wait_for_quiet()
    console.print(f"[dim]asking for instances: {name}[/]")
    with _served(directory) as port:
        found = statistics.median(_times(port, path))
    what = f"{INSTANCES:,} running sagas: {name} over HTTP, p50"
    return Row(what, found, READ_MS, "ms", 1.0, smaller_is_better=True, tries=[found / READ_MS])


def _fill(directory: Path) -> None:
    broker = open_broker(f"file:{directory}")
    broker.create_topic("orders", 2)
    for start in range(0, INSTANCES, BATCH):
        broker.append("orders", [_order(f"order-{number}") for number in range(start, start + BATCH)])
    broker.close()
    query = potok.start(checkout(), broker=f"file:{directory}", until_end=True, max_batch_records=BATCH)
    query.wait()


@contextmanager
def _served(directory: str) -> Iterator[int]:
    command = [sys.executable, "-m", "benchmarks.sagas", "serve", f"file:{directory}"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(60)


def _times(port: int, path: Any) -> list[float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    times: list[float] = []
    for _ in range(READS + READS // 4):
        began = time.perf_counter()
        connection.request("GET", path())
        answer = connection.getresponse()
        body = answer.read()
        times.append((time.perf_counter() - began) * 1000)
        if answer.status != 200 or b'"running"' not in body:
            raise RuntimeError(f"a wrong answer: {body[:500]!r}")
    connection.close()
    return times[READS // 4 :]


def main() -> None:
    what, url = sys.argv[1:]
    with ExitStack() as stack:
        if what == "run":
            queries = [stack.enter_context(potok.start(make(), broker=url)) for make in (checkout, services, shop)]
            queries[0].wait()
            return
        server = stack.enter_context(potok.serve(url, queries=["checkout"], port=0))
        print(server.url.rpartition(":")[2], flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()

"""From the moment a record is sent to the moment its result can be read, at 20 records a second: on Kafka, and on the
embedded log."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, Producer

from benchmarks import kafka, orders
from benchmarks.bench import Bench, Row, console
from benchmarks.measure import wait_for_quiet
from potok.log.broker import Broker
from potok.log.open import open_broker
from potok.records.log_record import LogRecord

PER_SECOND = 20
SECONDS = 60
WARM_UP = 15
P50_MS, P99_MS = 110.0, 220.0
EMBEDDED_P50_MS = 70.0
LOOK_S = 0.002


def median(bench: Bench) -> Row:
    return _row(bench, "p50", 0.50, P50_MS)


def slowest(bench: Bench) -> Row:
    return _row(bench, "p99", 0.99, P99_MS)


def embedded(bench: Bench) -> Row:
    wait_for_quiet()
    console.print("[dim]measuring the latency on the embedded log[/]")
    url, out = f"file:{bench.directory / 'latency-log'}", "latency-out"
    broker = open_broker(url)
    for topic in ("orders", out):
        broker.create_topic(topic, orders.PARTITIONS)
    process = _potok(bench, url, out)
    try:
        times = _measure_embedded(broker, out)
    finally:
        process.terminate()
        process.wait(60)
        broker.close()
    middle, slowest = _at(times, 0.50), _at(times, 0.99)
    what = f"latency at {PER_SECOND}/s on the embedded log, p50 (p99: {slowest:.0f} ms)"
    return Row(what, middle, EMBEDDED_P50_MS, "ms", 1.0, smaller_is_better=True, tries=[middle / EMBEDDED_P50_MS])


_measured: dict[str, list[float]] = {}


def _row(bench: Bench, name: str, share: float, wanted_ms: float) -> Row:
    """Kafka Streams' own figure is printed beside it; the bar is a time."""
    ours, theirs = (_at(_times(bench, side), share) for side in ("potok", "streams"))
    what = f"latency at {PER_SECOND}/s on Kafka, {name} (Kafka Streams: {theirs:.0f} ms)"
    return Row(what, ours, wanted_ms, "ms", 1.0, smaller_is_better=True, tries=[ours / wanted_ms])


def _at(times: list[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def _times(bench: Bench, side: str) -> list[float]:
    if side not in _measured:
        wait_for_quiet()
        console.print(f"[dim]measuring the latency of {side}[/]")
        with kafka.server(bench, 0) as url:
            out = "latency-out"
            open_broker(url).create_topic(out, kafka.PARTITIONS)
            start: Callable[[Bench, str, str], subprocess.Popen[bytes]] = _potok if side == "potok" else _streams
            process = start(bench, url, out)
            try:
                _measured[side] = _measure(kafka.bootstrap_of(url), out)
            finally:
                process.terminate()
                process.wait(60)
    return _measured[side]


def _potok(bench: Bench, url: str, out: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "benchmarks.latency", url, out])


def _streams(bench: Bench, url: str, out: str) -> subprocess.Popen[bytes]:
    arguments = [kafka.bootstrap_of(url), "exactly_once_v2", str(1 << 60), "1", str(bench.directory / "latency"), out]
    return kafka.started(bench, arguments)


def _measure(bootstrap: str, out: str) -> list[float]:
    """Each order is of a user of its own, so that each result tells which order it came of."""
    found: dict[str, float] = {}
    sent: dict[str, float] = {}
    ready, done = threading.Event(), threading.Event()

    def receive() -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "latency",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 10,
            }
        )
        consumer.subscribe([out])
        while not done.is_set():
            message = consumer.poll(0.05)
            if message is not None and not message.error():
                found.setdefault(message.key().decode().strip('"'), time.perf_counter())
                ready.set()
        consumer.close()

    receiver = threading.Thread(target=receive)
    receiver.start()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    number = 0
    deadline = time.monotonic() + 120
    while not ready.is_set() and time.monotonic() < deadline:
        _send(producer, f"first-{number}", sent)
        number += 1
        time.sleep(0.5)
    began = time.perf_counter()
    for number in range((WARM_UP + SECONDS) * PER_SECOND):
        time.sleep(max(0.0, began + number / PER_SECOND - time.perf_counter()))
        _send(producer, f"user-{number}", sent)
    deadline = time.monotonic() + 30
    while len(found) < len(sent) and time.monotonic() < deadline:
        time.sleep(0.1)
    done.set()
    receiver.join()
    return _times_of(sent, found)


def _measure_embedded(broker: Broker, out: str) -> list[float]:
    found: dict[str, float] = {}
    sent: dict[str, float] = {}
    done = threading.Event()

    def receive() -> None:
        seen = dict.fromkeys(range(orders.PARTITIONS), 0)
        while not done.wait(LOOK_S):
            for partition, end in broker.end_offsets(out).items():
                for batch in broker.read(out, partition, seen[partition], end) if end > seen[partition] else ():
                    at = time.perf_counter()
                    for key in batch.column("key").to_pylist():
                        found.setdefault(key.decode().strip('"'), at)
                seen[partition] = end

    receiver = threading.Thread(target=receive)
    receiver.start()

    def send(user: str) -> None:
        record = LogRecord(user.encode(), json.dumps(_order(user)).encode(), int(time.time() * 1000))
        sent[user] = time.perf_counter()
        broker.append("orders", [record])

    send("first")
    deadline = time.monotonic() + 120
    while not found and time.monotonic() < deadline:
        time.sleep(0.1)
    began = time.perf_counter()
    for number in range((WARM_UP + SECONDS) * PER_SECOND):
        time.sleep(max(0.0, began + number / PER_SECOND - time.perf_counter()))
        send(f"user-{number}")
    deadline = time.monotonic() + 30
    while len(found) < len(sent) and time.monotonic() < deadline:
        time.sleep(0.1)
    done.set()
    receiver.join()
    return _times_of(sent, found)


def _times_of(sent: Mapping[str, float], found: Mapping[str, float]) -> list[float]:
    wanted = [f"user-{number}" for number in range(WARM_UP * PER_SECOND, (WARM_UP + SECONDS) * PER_SECOND)]
    return [(found[user] - sent[user]) * 1000 for user in wanted]


def _order(user: str) -> dict[str, Any]:
    return {"order_id": user, "user_id": user, "amount": 50.0, "items": [], "created_at": int(time.time() * 1000)}


def _send(producer: Producer, user: str, sent: dict[str, float]) -> None:
    order = _order(user)
    sent[user] = time.perf_counter()
    producer.produce("orders", json.dumps(order), key=user)
    producer.poll(0)


def main(url: str, out: str) -> None:
    import potok
    from benchmarks.with_potok import typed_out

    potok.run(typed_out("latency", topic=out), broker=url)


if __name__ == "__main__":
    main(*sys.argv[1:])

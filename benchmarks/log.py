"""The embedded log by itself: appends that are durable when they return, and reads."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from benchmarks import orders
from benchmarks.bench import Bench, Row, console
from benchmarks.measure import wait_for_quiet
from potok.log.embedded.embedded_broker import EmbeddedBroker

BATCH = 1_000
SECONDS = 10.0
WANTED_APPENDS = 300_000
WANTED_READS = 2_000_000


def append(bench: Bench) -> Row:
    """Batches of 1000 orders, one after the other, from one process; each is on the disk when the next begins."""
    [batch, *_] = orders.batches(BATCH, 1_000)
    rates: list[float] = []
    for number in range(bench.repeat):
        wait_for_quiet()
        console.print("[dim]appending[/]")
        broker = EmbeddedBroker(bench.directory / f"append-{number}")
        broker.create_topic("orders", orders.PARTITIONS)
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < SECONDS:
            broker.append("orders", batch)
            count += BATCH
        rates.append(count / (time.perf_counter() - began))
        broker.close()
    return _row("embedded log, durable appends of 1000", rates, WANTED_APPENDS)


def read(bench: Bench) -> Row:
    """All orders of a log, as columns, in one process."""
    log = bench.log("log", bench.records, 100_000)
    rates: list[float] = []
    for _ in range(bench.repeat):
        wait_for_quiet()
        console.print("[dim]reading[/]")
        broker = EmbeddedBroker.shared(Path(log))
        began, count = time.perf_counter(), 0
        for partition, end in broker.end_offsets("orders").items():
            count += sum(batch.num_rows for batch in broker.read("orders", partition, 0, end))
        rates.append(count / (time.perf_counter() - began))
    return _row("embedded log, reads", rates, WANTED_READS)


def _row(what: str, rates: list[float], wanted: int) -> Row:
    tries = [rate / wanted for rate in rates]
    return Row(what, statistics.median(rates), wanted, "rows/s", 1.0, smaller_is_better=False, tries=tries)

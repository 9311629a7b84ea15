"""Ten queries on one topic in one shared query: from the moment 100 records are sent to the moment all ten tables have
them, and what the process costs while there is nothing to do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench, Row, console
from benchmarks.measure import idle_percent, wait_for_quiet
from potok import StreamsBuilder, minutes, tumbling
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.records.log_record import LogRecord
from potok.snapshots.ledger_view import read_entry
from potok.snapshots.tables import Tables

QUERIES = 10
RECORDS = 100
WARM_UP, BATCHES = 10, 60
USERS = 50
END_TO_END_MS, IDLE_PERCENT = 1_500.0, 6.0
IDLE_S = 20.0
PATIENCE_S = 120.0
LOOK_S = 0.004


def together(bench: Bench) -> Row:
    with _running(bench) as (broker, _):
        times = _times(broker)
    middle, slowest = _at(times, 0.50), _at(times, 0.99)
    what = f"{RECORDS} records in the tables of {QUERIES} queries, p99 (p50: {middle:.0f} ms)"
    return Row(what, slowest, END_TO_END_MS, "ms", 1.0, smaller_is_better=True, tries=[slowest / END_TO_END_MS])


def idle(bench: Bench) -> Row:
    with _running(bench) as (broker, pid):
        send_orders(broker, 0)
        _wait(broker)
        time.sleep(5)
        percent = idle_percent(pid, IDLE_S)
    what = f"{QUERIES} queries with nothing to do, of one core"
    return Row(what, percent, IDLE_PERCENT, "%", 1.0, smaller_is_better=True, tries=[percent / IDLE_PERCENT])


def _at(times: list[float], share: float) -> float:
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


@contextmanager
def _running(bench: Bench) -> Iterator[tuple[EmbeddedBroker, int]]:
    wait_for_quiet()
    directory = bench.directory / f"shared-{time.monotonic_ns()}"
    broker = EmbeddedBroker.shared(directory)
    broker.create_topic("orders", 2)
    console.print(f"[dim]running {QUERIES} queries in one[/]")
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.shared", str(directory)], stdin=subprocess.PIPE)
    try:
        _wait(broker, process)
        yield broker, process.pid
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
        broker.close()


def _times(broker: EmbeddedBroker) -> list[float]:
    times: list[float] = []
    for number in range(WARM_UP + BATCHES):
        began = time.perf_counter()
        send_orders(broker, number)
        _wait(broker)
        times.append((time.perf_counter() - began) * 1000)
        # Not in step with whatever polls.
        time.sleep(0.05 + number % 7 * 0.03)
    sent = RECORDS * (WARM_UP + BATCHES)
    counted = sum(Tables(broker, "q0")["counts"].all().values())
    assert counted == sent, f"{counted} of {sent} records were counted"
    return times[WARM_UP:]


def send_orders(broker: EmbeddedBroker, number: int) -> None:
    now = time.time_ns() // 1_000_000
    orders = [
        {"order_id": number * RECORDS + n, "user_id": f"user-{n % USERS}", "amount": float(n)} for n in range(RECORDS)
    ]
    broker.append("orders", [LogRecord(str(o["user_id"]).encode(), json.dumps(o).encode(), now) for o in orders])


def _wait(broker: EmbeddedBroker, process: subprocess.Popen[bytes] | None = None) -> None:
    """Until all ledgers are at the end of the topic: then the tables are."""
    deadline = time.monotonic() + PATIENCE_S
    ends = {"orders": broker.end_offsets("orders")}
    while True:
        entries = [read_entry(broker, f"q{number}") for number in range(QUERIES)]
        if all(entry is not None and not entry.offsets.pending(ends) for entry in entries):
            return
        if time.monotonic() > deadline or (process is not None and process.poll() is not None):
            raise RuntimeError("the queries never came to the end of the topic")
        time.sleep(LOOK_S)


def queries() -> list[StreamsBuilder]:
    """What somebody might ask of orders, in ten ways: counts, sums, extremes, filters and windows."""
    return [make_query(number) for number in range(QUERIES)]


def make_query(number: int) -> StreamsBuilder:
    builder = StreamsBuilder(f"q{number}")
    orders = builder.stream("orders", value="order_id bigint, user_id string, amount double")
    kept = orders if number == 0 else orders.filter(lambda v: v["amount"] >= number * 3)
    by_user = kept.group_by("user_id")
    if number % 3 == 1:
        by_user.windowed_by(tumbling(minutes(1))).sum("amount", name="counts")
    elif number % 3 == 2:
        by_user.sum("amount", name="counts").to_stream().to(f"out-{number}")
    else:
        by_user.count(name="counts")
    return builder


def main(directory: str) -> None:
    """Runs until nobody holds the other end of its standard input."""
    from potok.runtime.queries.query_group import QueryGroup
    from potok.settings import Settings
    from potok.spark.spark_executor import start_spark

    settings = Settings(broker=f"file:{directory}")
    with QueryGroup(EmbeddedBroker.shared(Path(directory)), settings, start_spark(settings)) as shared:
        for builder in queries():
            shared.add(builder)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])

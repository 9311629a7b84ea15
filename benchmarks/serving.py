"""A server asked over HTTP while its query runs at full load: rows by key, and changes as they come.

Server, feeder and clients are processes of their own, as they would be elsewhere.
"""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench, Row, console
from benchmarks.measure import wait_for_quiet
from benchmarks.row_client import ask, rows_of
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import TopicNotFound
from potok.records.log_record import LogRecord
from potok.snapshots.ledger_view import read_entry

USERS = 50_000
BLOCK, MOST_WAITING = 10_000, 400_000
WARM_UP, REQUESTS = 300, 20_000
CLIENTS, EACH = 16, 3_000
"""For several seconds, so that batches begin and end meanwhile."""
CHANGES = 200
P50_MS, P99_MS, RATE, PUSH_MS = 3.0, 20.0, 2_000.0, 50.0
PATIENCE_S = 180.0
SCRIPT = """
CREATE STREAM orders (user_id VARCHAR KEY, amount DOUBLE) WITH (KAFKA_TOPIC = 'orders', PARTITIONS = 2);
CREATE TABLE totals AS SELECT user_id, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY user_id;
"""
QUERY = "CTAS_TOTALS_1"


def median(bench: Bench) -> Row:
    times = _alone(bench)
    return _row("a row by key over HTTP under load, p50", _at(times, 0.50), P50_MS)


def slowest(bench: Bench) -> Row:
    times = _alone(bench)
    return _row("a row by key over HTTP under load, p99", _at(times, 0.99), P99_MS)


def _alone(bench: Bench) -> list[float]:
    """The times of one client's requests."""
    with _served(bench, load=True) as (port, broker), _at_work(broker):
        return _ask(port, 1, WARM_UP + REQUESTS)[WARM_UP:]


def rate(bench: Bench) -> Row:
    with _served(bench, load=True) as (port, broker), _at_work(broker):
        _ask(port, CLIENTS, WARM_UP // CLIENTS)
        began = time.perf_counter()
        times = _ask(port, CLIENTS, EACH)
        found = len(times) / (time.perf_counter() - began)
    what = f"rows by key over HTTP under load, {CLIENTS} clients"
    return Row(what, found, RATE, "requests/s", 1.0, smaller_is_better=False, tries=[found / RATE])


def push(bench: Bench) -> Row:
    """From the moment at which a batch can be seen in the log to the event at the client."""
    with _served(bench, load=False) as (port, broker):
        times = _changes(port, broker)
    return _row("a change at an SSE client after its batch has committed, p99", _at(times, 0.99), PUSH_MS)


def _row(what: str, found: float, bar: float) -> Row:
    return Row(what, found, bar, "ms", 1.0, smaller_is_better=True, tries=[found / bar])


def _at(times: list[float], share: float) -> float:
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


@contextmanager
def _served(bench: Bench, *, load: bool) -> Iterator[tuple[int, EmbeddedBroker]]:
    wait_for_quiet()
    directory = bench.directory / f"serving-{time.monotonic_ns()}"
    console.print("[dim]serving a query[/]")
    command = [sys.executable, "-m", "benchmarks.serving"]
    server = subprocess.Popen([*command, "serve", str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    processes = [server]
    assert server.stdout is not None
    broker = EmbeddedBroker.shared(directory)
    try:
        port = int(server.stdout.readline())
        _send(broker, range(USERS))
        _wait(broker)
        if load:
            processes.append(subprocess.Popen([*command, "feed", str(directory)], stdin=subprocess.PIPE))
            time.sleep(3)
        yield port, broker
    finally:
        for process in reversed(processes):
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)
        broker.close()


def _send(broker: EmbeddedBroker, users: range | list[int]) -> None:
    now = time.time_ns() // 1_000_000
    broker.append("orders", [LogRecord(f"u{user}".encode(), b'{"AMOUNT":1.5}', now) for user in users])


def _waiting(broker: EmbeddedBroker) -> int:
    entry = read_entry(broker, QUERY)
    ends = broker.end_offsets_of(["orders"])
    return sum(ends["orders"].values()) if entry is None else entry.offsets.pending(ends)


def _wait(broker: EmbeddedBroker) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while _waiting(broker):
        if time.monotonic() > deadline:
            raise RuntimeError("the query never came to the end of the topic")
        time.sleep(0.05)


@contextmanager
def _at_work(broker: EmbeddedBroker) -> Iterator[None]:
    """Raises unless batches are committed meanwhile, and more waits in the end: else there was no load."""
    before = read_entry(broker, QUERY)
    yield
    after = read_entry(broker, QUERY)
    if before is None or after is None or after.batch == before.batch or not _waiting(broker):
        raise RuntimeError("the query had nothing to do while it was asked")


def _ask(port: int, clients: int, each: int) -> list[float]:
    return ask(port, clients, each, rows_of("totals", "USER_ID", "u", USERS))


def _changes(port: int, broker: EmbeddedBroker) -> list[float]:
    """One order at a time, so that it is known to which batch an event belongs."""
    committed, watched = threading.Event(), threading.Event()
    seen = 0.0

    def watch() -> None:
        nonlocal seen
        end = sum(broker.end_offsets("TOTALS").values())
        watched.set()
        while sum(broker.end_offsets("TOTALS").values()) == end:
            time.sleep(0.0005)
        seen = time.perf_counter()
        committed.set()

    times: list[float] = []
    with socket.create_connection(("127.0.0.1", port)) as raw, raw.makefile("rb") as lines:
        raw.sendall(b"GET /tables/totals/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not lines.readline().startswith(b"retry"):
            pass
        for number in range(CHANGES):
            committed.clear()
            watched.clear()
            threading.Thread(target=watch, daemon=True).start()
            watched.wait()
            _send(broker, [number])
            while not lines.readline().startswith(b"data:"):
                pass
            arrived = time.perf_counter()
            committed.wait(PATIENCE_S)
            times.append(max(0.0, arrived - seen) * 1000)
            time.sleep(number % 7 * 0.01)  # not in step with whatever polls
    return times


def _serve(directory: Path) -> None:
    from potok.server.server import Server
    from potok.settings import Settings
    from potok.statements.database import Database
    from potok.statements.session import SqlSession

    broker = EmbeddedBroker.shared(directory)
    with Database(broker, Settings(broker=f"file:{directory}")) as database:
        SqlSession(database).execute(SCRIPT)
        with Server(database, port=0) as server:
            print(server.port, flush=True)
            sys.stdin.read()


def _feed(directory: Path) -> None:
    broker, over = EmbeddedBroker.shared(directory), threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    while not over.wait(0.005):
        try:
            if _waiting(broker) < MOST_WAITING:
                _send(broker, [random.randrange(USERS) for _ in range(BLOCK)])
        except TopicNotFound:
            return


if __name__ == "__main__":
    {"serve": _serve, "feed": _feed}[sys.argv[1]](Path(sys.argv[2]))

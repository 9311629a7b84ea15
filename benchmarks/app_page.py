"""A page of a program in Faust's style, asked over HTTP while its agent runs at full load: a row of a large table.

Worker, feeder and client are processes of their own, as they would be elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench, Row, console
from benchmarks.measure import wait_for_quiet
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.log.errors import TopicNotFound
from potok.records.log_record import LogRecord
from potok.snapshots.ledger_view import read_entry

QUERY, TOPIC = "app-page", "orders"
USERS = 1_000_000
BLOCK, MOST_WAITING = 10_000, 400_000
WARM_UP, REQUESTS = 300, 20_000
P99_MS = 10.0
PATIENCE_S = 300.0


def slowest(bench: Bench) -> Row:
    with _served(bench) as (port, broker):
        began = _done(broker)
        times = asyncio.run(_ask(port, WARM_UP + REQUESTS))[WARM_UP:]
        if _done(broker) == began:
            raise RuntimeError("the agent stood still while the page was asked")
    found = sorted(times)[int(len(times) * 0.99)]
    what = f"a row of {USERS:,} by a page of an app under load, p99"
    return Row(what, found, P99_MS, "ms", 1.0, smaller_is_better=True, tries=[found / P99_MS])


@contextmanager
def _served(bench: Bench) -> Iterator[tuple[int, EmbeddedBroker]]:
    wait_for_quiet()
    directory = bench.directory / f"app-page-{time.monotonic_ns()}"
    broker = EmbeddedBroker.shared(directory)
    broker.create_topic(TOPIC, 2)
    for first in range(0, USERS, 10 * BLOCK):
        _send(broker, range(first, first + 10 * BLOCK))
    console.print("[dim]running an app[/]")
    command = [sys.executable, "-m", "benchmarks.app_page"]
    worker = subprocess.Popen([*command, "work", str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    processes = [worker]
    assert worker.stdout is not None
    try:
        port = int(worker.stdout.readline())
        _wait(broker)
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
    records = [LogRecord(None, b'{"user_id":"u%d","amount":1.5}' % user, now) for user in users]
    broker.append(TOPIC, records)


def _waiting(broker: EmbeddedBroker) -> int:
    entry = read_entry(broker, QUERY)
    ends = broker.end_offsets_of([TOPIC])
    return sum(ends[TOPIC].values()) if entry is None else entry.offsets.pending(ends)


def _done(broker: EmbeddedBroker) -> int:
    return sum(broker.end_offsets(TOPIC).values()) - _waiting(broker)


def _wait(broker: EmbeddedBroker) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while _waiting(broker):
        if time.monotonic() > deadline:
            raise RuntimeError("the app never came to the end of the topic")
        time.sleep(0.05)


async def _ask(port: int, count: int) -> list[float]:
    """The times of all requests, in milliseconds, by a plain socket: a client library would be most of what is seen."""
    times: list[float] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(count):
        user = f"u{random.randrange(USERS)}"
        began = time.perf_counter()
        writer.write(f"GET /counts/{user}/ HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        times.append((time.perf_counter() - began) * 1000)
        page = json.loads(body)
        if b" 200 " not in head[:20] or page["user_id"] != user or page["orders"] < 1:
            raise RuntimeError(f"a wrong answer: {body!r}")
    writer.close()
    return times


def _app(directory: Path) -> Any:
    import potok.faust as faust

    class Order(faust.Record):
        user_id: str
        amount: float

    app = faust.App(QUERY, broker=f"file:{directory}")
    orders, counts = app.topic(TOPIC, value_type=Order), app.Table("counts", default=int)

    @app.agent(orders)
    async def count(stream: Any) -> None:
        async for order in stream:
            counts[order.user_id] += 1

    @app.page("/counts/{user_id}/")
    async def page(web: Any, request: Any, user_id: str) -> Any:
        return web.json({"user_id": user_id, "orders": counts.get(user_id, 0)})

    return app


def _work(directory: Path) -> None:
    from potok.cli.queries.app_services import hosted
    from potok.spark.run import start

    app = _app(directory)
    with hosted(app, port=0) as server:
        assert server is not None
        query = start(app, broker=app.broker)
        print(server.port, flush=True)
        sys.stdin.read()
        query.stop()
        query.wait()


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
    {"work": _work, "feed": _feed}[sys.argv[1]](Path(sys.argv[2]))

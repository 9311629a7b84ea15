"""What it costs to be watched: scrapes of a process with 50 queries, and batches with metrics and traces against
without. On and off take turns in one process, block by block, so what else the machine does meets both."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pyarrow as pa

from benchmarks.bench import Bench, Row, console
from benchmarks.measure import run_measured, wait_for_quiet
from potok import StreamsBuilder, minutes, tumbling
from potok.log.broker import LOG_SCHEMA
from potok.log.embedded.embedded_broker import EmbeddedBroker
from potok.monitoring.monitor import Monitor
from potok.runtime.monitoring.query_monitor import GroupMonitor
from potok.runtime.monitoring.readings import group_readings
from potok.runtime.monitoring.tracing import tracer_of
from potok.runtime.queries.query_group import QueryGroup
from potok.server.operations.operations_server import OperationsServer
from potok.settings import Settings
from potok.spark.spark_executor import start_spark

QUERIES, SCRAPES = 50, 60
SCRAPE_MS, COST = 50.0, 1.03
SCRAPE_EVERY_S = 0.2
"""Seventy times as often as Prometheus does by default."""
BLOCKS, WARM_UP = 14, 3
SIZES = {100: 12, 100_000: 4}
"""How many batches of each size a block has."""
LIMIT_S = 600.0


def scrape(bench: Bench) -> Row:
    found = _measured(bench, "scrape")
    what = f"GET /metrics with {QUERIES} queries, p99 (p50: {found['p50']:.1f} ms, {found['lines']:,.0f} lines)"
    return Row(what, found["p99"], SCRAPE_MS, "ms", 1.0, smaller_is_better=True, tries=[found["p99"] / SCRAPE_MS])


def metrics_small(bench: Bench) -> Row:
    return _cost(bench, "metrics", 100)


def metrics_large(bench: Bench) -> Row:
    return _cost(bench, "metrics", 100_000)


def traces_small(bench: Bench) -> Row:
    return _cost(bench, "traces", 100)


def traces_large(bench: Bench) -> Row:
    return _cost(bench, "traces", 100_000)


def _cost(bench: Bench, mode: str, records: int) -> Row:
    found = _measured(bench, mode, "--records", str(records))
    what = f"batches of {records:,} records with {mode} against without"
    return Row(what, found["on"], found["off"], "ms", COST, smaller_is_better=True, tries=[found["ratio"]])


def _measured(bench: Bench, mode: str, *more: str) -> dict[str, float]:
    wait_for_quiet()
    console.print(f"[dim]measuring {mode}[/]")
    out = bench.directory / f"operate-{time.monotonic_ns()}.json"
    directory = bench.directory / f"operate-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "benchmarks.operate", mode, str(directory), "--out", str(out), *more]
    run_measured(command, LIMIT_S, memory=False)
    found: dict[str, float] = json.loads(out.read_text())
    return found


class Sink(BaseHTTPRequestHandler):
    """A collector that takes everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def _program(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    orders = builder.stream("orders", value="user string, amount double")
    by_user = orders.filter(lambda v: v["amount"] > 1, name="large").group_by("user")
    by_user.count(name="counts").to_stream().to(f"{name}-counts")
    by_user.windowed_by(tumbling(minutes(1))).sum("amount", name="totals")
    return builder


def _records(count: int, at_ms: int) -> pa.RecordBatch:
    trace = [{"name": "traceparent", "value": b"00-%032x-00f067aa0ba902b7-01" % (at_ms + 1)}]
    columns = [
        pa.array([b"k%d" % n for n in range(count)]),
        pa.array([b'{"user": "u%d", "amount": %d.5}' % (n % 500, n % 90) for n in range(count)]),
        pa.array([at_ms + n % 1_000 for n in range(count)], pa.int64()),
        pa.nulls(count, pa.int64()),
        pa.array([trace if n % 10 == 0 else None for n in range(count)], LOG_SCHEMA.field("headers").type),
    ]
    return pa.record_batch(columns, schema=LOG_SCHEMA)


@contextmanager
def _watched(group: QueryGroup, broker: EmbeddedBroker, settings: Settings) -> Iterator[str]:
    monitor = Monitor()
    GroupMonitor(monitor, broker, settings, lambda: group, lambda: group_readings(group))
    with OperationsServer(monitor, "127.0.0.1", 0) as server:
        yield f"{server.url}/metrics"


def _scrapes(group: QueryGroup, broker: EmbeddedBroker, settings: Settings) -> dict[str, float]:
    for number in range(QUERIES):
        group.add(_program(f"query-{number}"))
    broker.append("orders", _records(100, 0))
    while group.step():
        pass
    times: list[float] = []
    lines = 0
    with _watched(group, broker, settings) as url:
        urllib.request.urlopen(url).read()
        for number in range(SCRAPES):
            broker.append("orders", _records(100, number * 1_000))
            batch = threading.Thread(target=group.step)
            batch.start()
            began = time.perf_counter()
            lines = urllib.request.urlopen(url).read().count(b"\n")
            times.append((time.perf_counter() - began) * 1_000)
            batch.join()
    times.sort()
    return {"p50": statistics.median(times), "p99": times[int(len(times) * 0.99)], "lines": lines}


def _costs(mode: str, records: int, group: QueryGroup, broker: EmbeddedBroker, settings: Settings) -> dict[str, float]:
    group.add(_program("watched"))
    with HTTPServer(("127.0.0.1", 0), Sink) as collector, _watched(group, broker, settings) as url:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        traced = Settings(tracing=f"http://127.0.0.1:{collector.server_port}") if mode == "traces" else settings
        tracer = tracer_of(traced)
        on, off = list[float](), list[float]()
        number = 0
        for block in range(BLOCKS + WARM_UP):
            # off on on off: a drift meets both alike.
            is_on = block % 4 in (1, 2)
            group.tracer = tracer if is_on else None
            ended = threading.Event()
            scraper = threading.Thread(target=_scrape, args=(url, ended))
            if is_on and mode == "metrics":
                scraper.start()
            for _ in range(SIZES[records]):
                number += 1
                broker.append("orders", _records(records, number * 1_000))
                began = time.perf_counter()
                group.step()
                took = (time.perf_counter() - began) * 1_000
                if block >= WARM_UP:
                    (on if is_on else off).append(took)
            ended.set()
            if scraper.is_alive():
                scraper.join()
        collector.shutdown()
    with_it, without = statistics.median(on), statistics.median(off)
    return {"on": with_it, "off": without, "ratio": with_it / without}


def _scrape(url: str, ended: threading.Event) -> None:
    while not ended.wait(SCRAPE_EVERY_S):
        urllib.request.urlopen(url).read()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("scrape", "metrics", "traces"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    settings = Settings(broker=f"file:{options.directory}", shards=2)
    broker = EmbeddedBroker.shared(options.directory)
    broker.create_topic("orders", 2)
    group = QueryGroup(broker, settings, start_spark(settings), "watched-group")
    if options.mode == "scrape":
        found = _scrapes(group, broker, settings)
    else:
        found = _costs(options.mode, options.records, group, broker, settings)
    options.out.write_text(json.dumps(found))
    group.stop()


if __name__ == "__main__":
    main()

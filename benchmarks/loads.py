"""Many of everything, and large of everything: how a query bears loads that are far from those of the other rows."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import orders
from benchmarks.bench import Bench, Row, batch_time, console, speed
from benchmarks.foundation import USERS, more_of_the_same, preloaded
from benchmarks.measure import wait_for_quiet
from potok.log.open import open_broker

HOT_SHARE = 0.9
MILLION, MANY_KEYS = 1_000_000, 50_000_000
LARGE_BYTES, LARGE_RECORDS = 1 << 20, 512
TOPICS, PARTITIONS = 1_000, 10
QUERIES = 200
PLAN_MS, IDLE_PERCENT, START_S, BATCH_S, MEMORY_MB = 50.0, 5.0, 60.0, 3.0, 2_560.0
LIMIT_S = 600.0


def hot_key(bench: Bench) -> Row:
    """The typed topology on orders of which most belong to one user, against orders of 100,000 users."""
    uniform = bench.log("log", bench.records, USERS)
    hot = bench.made("hot-log", lambda path: _write_hot(path, bench.records))
    return bench.at_least(
        f"{HOT_SHARE:.0%} of the records on one key, against uniform keys",
        lambda: speed(bench.potok("typed", hot, bench.batch)),
        lambda: speed(bench.potok("typed", uniform, bench.batch)),
        0.7,
    )


def _write_hot(path: Path, records: int) -> None:
    broker = open_broker(path)
    broker.create_topic("orders", orders.PARTITIONS)
    for first, texts in orders.chunks(records, USERS):
        is_hot = pa.array(np.random.default_rng(first).random(len(texts)) < HOT_SHARE)
        hot = pc.replace_substring_regex(texts, '"user_id":"[^"]*"', '"user_id":"user-0"')
        values = pc.if_else(is_hot, hot, texts).cast(pa.binary())
        broker.append("orders", pa.RecordBatch.from_pydict({"value": values}))


def large_values(bench: Bench) -> Row:
    """Bytes per second of orders with a note of 1 MB, against orders of about 130 bytes."""
    small = bench.log("log", bench.records, USERS)
    large = bench.made("large-log", _write_large)
    small_bytes = float(pc.mean(pc.binary_length(orders.values(0, 1_000, USERS))).as_py())
    return bench.at_least(
        "values of 1 MB against values of 130 bytes, in bytes per second",
        lambda: speed(bench.potok("typed", large, bench.batch)) * LARGE_BYTES,
        lambda: speed(bench.potok("typed", small, bench.batch)) * small_bytes,
        0.5,
    )


def large_values_memory(bench: Bench) -> Row:
    """The peak memory of the same run: batches are bounded by bytes."""
    large = bench.made("large-log", _write_large)
    peaks = [bench.potok_memory("typed", large, bench.batch) for _ in range(bench.repeat)]
    return _against(f"peak memory, {LARGE_RECORDS} values of 1 MB", peaks, MEMORY_MB, "MB")


def _write_large(path: Path) -> None:
    broker = open_broker(path)
    broker.create_topic("orders", orders.PARTITIONS)
    note = '"note":"' + "x" * LARGE_BYTES + '",'
    for first in range(0, LARGE_RECORDS, 16):
        texts = pc.replace_substring(orders.values(first, 16, USERS), '"items"', note + '"items"')
        broker.append("orders", pa.RecordBatch.from_pydict({"value": texts.cast(pa.binary())}))


def many_keys(bench: Bench) -> Row:
    """Batches of 250,000 records that touch 1 % of 50 M keys, against those of a query with 1 M keys."""
    some, many = preloaded(bench, "million-keys", MILLION), preloaded(bench, "fifty-million-keys", MANY_KEYS)
    return bench.at_most(
        "batch time, 50 M keys against 1 M",
        lambda: batch_time(more_of_the_same(bench, many)),
        lambda: batch_time(more_of_the_same(bench, some)),
        "ms",
        1.5,
    )


def many_keys_memory(bench: Bench) -> Row:
    many = preloaded(bench, "fifty-million-keys", MANY_KEYS)
    peaks = []
    for _ in range(bench.repeat):
        broker = open_broker(many)
        for _, texts in orders.chunks(bench.batch, USERS):
            broker.append("orders", pa.RecordBatch.from_pydict({"value": texts.cast(pa.binary())}))
        peaks.append(bench.potok_memory("typed", many, bench.batch // 4, "keys"))
    return _against("peak memory with 50 M keys, beside the page cache", peaks, MEMORY_MB, "MB")


def steady(bench: Bench) -> Row:
    """The rate of the last quarter of a backlog against that of its first quarter."""
    log = bench.log("backlog", 25 * bench.records, MILLION)
    found = [bench.potok("typed", log, bench.batch) for _ in range(bench.repeat)]
    tries = [last.rows_per_second / first.rows_per_second for _, first, last in found]
    first, last = (statistics.median(one[index].rows_per_second for one in found) for index in (1, 2))
    what = f"the last quarter of {25 * bench.records:,} records against the first"
    return Row(what, last, first, "rows/s", 0.9, smaller_is_better=False, tries=tries)


def partitions_plan(bench: Bench) -> Row:
    figures = [_worker(bench, "partitions")["plan_ms"] for _ in range(bench.repeat)]
    return _against(f"planning a batch of {TOPICS:,} topics with {PARTITIONS} partitions each", figures, PLAN_MS, "ms")


def partitions_idle(bench: Bench) -> Row:
    figures = [_worker(bench, "partitions")["idle_percent"] for _ in range(bench.repeat)]
    return _against(
        f"{TOPICS:,} topics with {PARTITIONS} partitions each, idle, of one core", figures, IDLE_PERCENT, "%"
    )


def queries_start(bench: Bench) -> Row:
    figures = [_worker(bench, "queries")["start_s"] for _ in range(bench.repeat)]
    return _against(f"start of {QUERIES} queries in one group", figures, START_S, "s")


def queries_batch(bench: Bench) -> Row:
    figures = [_worker(bench, "queries")["batch_s"] for _ in range(bench.repeat)]
    return _against(f"100 records in the tables of {QUERIES} queries", figures, BATCH_S, "s")


def _against(what: str, figures: list[float], bar: float, unit: str) -> Row:
    tries = [figure / bar for figure in figures]
    return Row(what, statistics.median(figures), bar, unit, 1.0, smaller_is_better=True, tries=tries)


def _worker(bench: Bench, what: str) -> dict[str, float]:
    wait_for_quiet()
    console.print(f"[dim]running {what}[/]")
    directory = bench.directory / f"{what}-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "benchmarks.loads_worker", what, str(directory)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=LIMIT_S)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found

"""Filter, group, count and sum: what the foundation of the engine costs."""

from __future__ import annotations

import statistics

import pyarrow as pa

from benchmarks import orders
from benchmarks.bench import Bench, Row, batch_time, speed
from benchmarks.measure import Rates
from potok.log.open import open_broker

USERS = 100_000
MANY_USERS = 5_000_000
SMALL_BATCH_MS = 60.0


def inputs(bench: Bench) -> tuple[str, str]:
    log = bench.log("log", bench.records, USERS)
    return log, bench.files("files", bench.records, USERS, bench.batch)


def typed(bench: Bench) -> Row:
    log, files = inputs(bench)
    return bench.at_least(
        "typed topology, count and sum",
        lambda: speed(bench.potok("typed", log, bench.batch)),
        lambda: speed(bench.handwritten("count_and_sum", files)),
        2.0,
    )


def dynamic(bench: Bench) -> Row:
    log, files = inputs(bench)
    return bench.at_least(
        "dynamic values, untraceable lambdas",
        lambda: speed(bench.potok("dynamic", log, bench.batch)),
        lambda: speed(bench.handwritten("count_and_sum", files)),
        1.0,
    )


def branches(bench: Bench) -> Row:
    log, files = inputs(bench)
    return bench.at_least(
        "three branches against three queries",
        lambda: speed(bench.potok("seeds", log, bench.batch)),
        lambda: speed(bench.handwritten("three_branches", files)),
        2.5,
    )


def memory(bench: Bench) -> Row:
    log, files = inputs(bench)
    return bench.at_most(
        "peak memory, typed topology",
        lambda: bench.potok_memory("typed", log, bench.batch),
        lambda: bench.handwritten_memory("count_and_sum", files),
        "MB",
        1.2,
    )


def small_batches(bench: Bench) -> Row:
    log = bench.log("small-log", 10_000, 1_000)
    files = bench.files("small-files", 10_000, 1_000, 100)
    return bench.at_most(
        "a batch of 100 records",
        lambda: batch_time(bench.potok("typed", log, 100)),
        lambda: batch_time(bench.handwritten("count_and_sum", files)),
        "ms",
        0.7,
    )


def small_batch(bench: Bench) -> Row:
    """The same batches as in `small_batches`, against a time."""
    log = bench.log("small-log", 10_000, 1_000)
    times = [batch_time(bench.potok("typed", log, 100)) for _ in range(bench.repeat)]
    tries = [time / SMALL_BATCH_MS for time in times]
    what = "a batch of 100 records, embedded log"
    return Row(what, statistics.median(times), SMALL_BATCH_MS, "ms", 1.0, smaller_is_better=True, tries=tries)


def large_state(bench: Bench) -> Row:
    """The same input twice: on a query that knows its 100 k users alone, and on one that knows 5 M."""
    some, many = preloaded(bench, "some-keys", USERS), preloaded(bench, "many-keys", MANY_USERS)
    return bench.at_most(
        "batch time, 5 M keys against 100 k",
        lambda: batch_time(more_of_the_same(bench, many)),
        lambda: batch_time(more_of_the_same(bench, some)),
        "ms",
        1.3,
    )


def preloaded(bench: Bench, name: str, users: int) -> str:
    log = bench.log(name, users * 3 // 2 if users == USERS else users, users)
    bench.potok("typed", log, bench.batch, "keys")
    return log


def more_of_the_same(bench: Bench, log: str) -> list[Rates]:
    broker = open_broker(log)
    for _, texts in orders.chunks(2_000_000, USERS):
        broker.append("orders", pa.RecordBatch.from_pydict({"value": texts.cast(pa.binary())}))
    return bench.potok("typed", log, bench.batch // 4, "keys")

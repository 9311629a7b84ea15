"""Cells of one shard in Cassandra, against PostgreSQL and Redis: what one attempt reads and writes, without Spark."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable

from tests.cassandra_server import cassandra_server
from tests.servers import postgres_server, redis_server

from benchmarks.bench import Bench, Row
from potok.state.cell import encode_cell
from potok.state.fence import Attempt
from potok.state.open import open_store

LARGE, SMALL = 50_000, 100
BATCHES = 12


def large_postgres(bench: Bench) -> Row:
    """The same cells are read and rewritten in each batch."""
    with cassandra_server() as ours, postgres_server() as other:
        return _compared(bench, "PostgreSQL", LARGE, ours.url, other.url, 6.0)


def small_postgres(bench: Bench) -> Row:
    with cassandra_server() as ours, postgres_server() as other:
        return _compared(bench, "PostgreSQL", SMALL, ours.url, other.url, 5.0)


def small_redis(bench: Bench) -> Row:
    with cassandra_server() as ours, redis_server() as url:
        return _compared(bench, "Redis", SMALL, ours.url, url, 80.0)


def _compared(bench: Bench, name: str, cells: int, ours: str, other: str, bar: float) -> Row:
    what = f"a batch of {cells:,} cells in Cassandra against {name}"
    return bench.at_most(what, _batches(ours, cells), _batches(other, cells), "ms", bar)


def _batches(url: str, count: int) -> Callable[[], float]:
    """Return what measures the middle of some batches, in milliseconds."""
    keys = [b"%06d" % number for number in range(count)]

    def measure() -> float:
        query, took = uuid.uuid4().hex, []
        for batch in range(1, BATCHES + 1):
            attempt = Attempt(1, batch)
            cells = [encode_cell(attempt, b"%016d" % batch, b"%016d" % number) for number in range(count)]
            began = time.perf_counter()
            store = open_store(url, query, 0)
            store.attempt()
            store.get_many("t", keys)
            store.put_many(attempt, [("t", list(zip(keys, cells, strict=True)))])
            took.append((time.perf_counter() - began) * 1_000)
        return statistics.median(took[2:])

    return measure

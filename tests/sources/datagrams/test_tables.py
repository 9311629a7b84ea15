"""The tables of StatsD metrics."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.sources import statsd_tables
from potok.sources.datagrams import sketch
from potok.sources.datagrams.parse import records_of
from potok.testing import TestDriver

SECONDS = 1_000


def send(driver: TestDriver, text: bytes, at_s: float) -> None:
    for row in records_of([text], sets=True).records.to_pylist():
        driver.send("statsd", key=row["key"].decode(), value=row["value"], timestamp=int(at_s * SECONDS))


def program(**options: Any) -> StreamsBuilder:
    builder = StreamsBuilder("metrics")
    statsd_tables(builder, "statsd", **options)
    return builder


@pytest.mark.parametrize("batch_records", [None, 1])
def test_each_type_of_metric_has_its_table(batch_records: int | None) -> None:
    with TestDriver(program(percentiles=(50, 99.9))) as driver:
        send(driver, b"views:1|c\nviews:1|c|@0.1\nviews:2|c", 1)
        send(driver, b"views:5|c", 11)
        send(driver, b"total:100|C\ntotal:130|C\ntotal:20|C", 11)
        send(driver, b"heap:10|g\nheap:+5|g\nheap:-3|g", 11)
        send(driver, b"took:10|ms\ntook:20|ms|@0.5\nsize:7|h", 11)
        send(driver, b"users:ann|s\nusers:bob|s\nusers:ann|s", 11)
        driver.run(batch_records)
        counters = {(key.key, key.start_ms): value for key, value in driver.table("statsd_counters").items()}
        assert counters == {("views", 0): 13.0, ("views", 10_000): 5.0}
        assert dict(driver.table("statsd_totals").items()) == {"total": 50.0}
        assert dict(driver.table("statsd_gauges").items()) == {"heap": 12.0}
        [users] = [value for _, value in driver.table("statsd_sets").items()]
        assert users == 2
        timers = {key.key: value for key, value in driver.table("statsd_timers").items()}
        assert timers["size"] == {"count": 1, "sum": 7, "min": 7, "max": 7, "mean": 7, "p50": 7, "p99_9": 7}
        assert {name: timers["took"][name] for name in ("count", "sum", "min", "max")} == {
            "count": 3,
            "sum": 50,
            "min": 10,
            "max": 20,
        }
        assert timers["took"]["p50"] == pytest.approx(20, rel=0.01)


def test_percentiles_are_within_one_percent_of_the_exact_ones() -> None:
    numbers = [random.Random(7).lognormvariate(3, 2) for _ in range(5_000)] + [-5.0, 0.0, -1e-12, 1e12]
    found: dict[str, Any] = sketch.empty()
    for number in numbers:
        found = sketch.add(found, number, 1.0)
    summary = sketch.summary(found, (0.02, 50, 75, 95, 99, 99.9, 100))
    exact = sorted(numbers)
    for percentile in (0.02, 50, 75, 95, 99, 99.9, 100):
        expected = exact[math.ceil(len(exact) * percentile / 100) - 1]
        assert summary[sketch.name_of(percentile)] == pytest.approx(expected, rel=sketch.ERROR, abs=1e-9)


def test_a_percentile_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TopologyError, match="101 is not a percentile"):
        program(percentiles=(50, 101))

"""An aggregator that fails: what dead letters of many keys cost, in one task and without Spark."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.bench import Bench, Row
from potok.expressions.function import Function
from potok.operators.aggregates.accumulate import UNTOUCHED, Folding
from potok.operators.aggregates.accumulators import accumulator_of
from potok.topology.nodes import Aggregation

FEW, MANY = 25_000, 250_000


def failing_keys(bench: Bench) -> Row:
    """Every record has a key of its own, and two of three fail: a record must not cost more where there are more."""
    what = f"failing aggregator, {MANY:,} keys against {FEW:,}"
    return bench.at_most(what, lambda: ns_per_record(MANY), lambda: ns_per_record(FEW), "ns/row", 2.0)


def ns_per_record(count: int) -> float:
    folder = accumulator_of(Aggregation("fold", Function.of(collect, (3,)), []))
    nothing: list[None] = [None] * count
    folding = Folding(folder, list(range(count)), ["k"] * count, list(range(count)), nothing, nothing)
    states: list[Any] = [UNTOUCHED] * count
    began = time.perf_counter_ns()
    errors = folding.run(states)
    took = time.perf_counter_ns() - began
    assert len(errors) == count * 2 // 3
    return took / count


def collect(k: str, v: int, agg: list[int] | None) -> list[int]:
    found = agg or []
    found.append(v)
    if v % 3:
        raise ValueError(v)
    return found

"""Partial results where the records are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators.core.chunks import chunk_of, letters, task_of
from potok.expressions.expr import Column
from potok.operators.aggregates.pre_aggregate import PreAggregate, merge_partials
from potok.operators.core.chunk import from_ipc
from potok.operators.core.operator import Task
from potok.operators.exchange.shuffle_writer import ShuffleWriter
from potok.topology.aggregations import AggregatePlan, Slot
from potok.topology.nodes import Tumbling
from potok.topology.nodes.windows import tumbling_ms

INT = pa.int64()
PLAN = AggregatePlan(
    "avg",
    (Slot("sum", Column(INT, "value"), INT), Slot("count", Column(INT, "value"), INT), Slot("count", None, INT)),
    (),
    None,
    pa.float64(),
)


def partials(chunks: list[Any], window: Tumbling | None = None, task: Task | None = None) -> list[dict[str, Any]]:
    shuffle_writer = ShuffleWriter(0)
    operator = PreAggregate("p", task or task_of(), PLAN, window, shuffle_writer, 1, 3)
    for chunk in chunks:
        operator.push(chunk)
    operator.finish()
    rows = [
        row for shuffle_block in shuffle_writer.shuffle_blocks for row in from_ipc(shuffle_block.payload).to_pylist()
    ]
    return sorted(rows, key=lambda row: (row["key"], row.get("start", 0)))


def test_one_row_per_key_leaves_the_task() -> None:
    rows = partials(
        [chunk_of(pa.array(["a", "b", "a"]), pa.array([1, None, 3])), chunk_of(pa.array(["a"]), pa.array([5]))]
    )
    assert [(row["key"], row["s0"], row["s1"], row["s2"]) for row in rows] == [(b"a", 9, 3, 3), (b"b", None, 0, 1)]


def test_the_latest_time_of_a_key_is_kept() -> None:
    (row,) = partials([chunk_of(pa.array(["a", "a"]), pa.array([1, 2]), [9, 4])])
    assert (row["timestamp"], row["stream_time"]) == (9, 9)


def test_windows_are_distinguished() -> None:
    rows = partials([chunk_of(pa.array(["a"] * 3), pa.array([1, 2, 3]), [1, 5, 12])], tumbling_ms(10, 100, 100))
    assert [(row["start"], row["s0"]) for row in rows] == [(0, 3), (10, 3)]


def test_late_records_and_records_without_a_key_stay_behind() -> None:
    task = task_of()
    chunk = chunk_of(pa.array(["a", None, "a"]), pa.array([1, 2, 3]), [50, 50, 3])
    assert len(partials([chunk], tumbling_ms(10, 0, 100), task)) == 1
    assert sorted(letter["reason"] for letter in letters(task)) == ["late", "no key"]


@pytest.mark.parametrize(
    "keys", [["a", 1, None, {"x": 1}], pa.array([1.5, 1.5, None, -0.0]), pa.array([{"a": 1}, {"a": 1}, None, {"a": 2}])]
)
def test_keys_of_any_kind_group(keys: Any) -> None:
    task = task_of()
    rows = partials([chunk_of(keys, pa.array([1, 1, 1, 1]))], task=task)
    assert sum(row["s2"] for row in rows) == 3
    assert task.dead_letters.reasons == {"no key": 1}


def test_a_key_that_cannot_be_one_is_an_error_of_its_record() -> None:
    task = task_of()
    assert len(partials([chunk_of([object(), "a"], pa.array([1, 1]))], task=task)) == 1
    assert task.dead_letters.reasons == {"error": 1}


def test_partial_results_merge_in_any_order() -> None:
    rng = np.random.default_rng(7)
    keys, values = rng.integers(0, 5, 60), rng.integers(-9, 9, 60)
    whole = partials([chunk_of(pa.array(keys), pa.array(values))])
    parts = [chunk_of(pa.array(keys[i::4]), pa.array(values[i::4])) for i in (2, 0, 3, 1)]
    assert [(r["key"], r["s0"], r["s1"]) for r in partials(parts)] == [(r["key"], r["s0"], r["s1"]) for r in whole]


def test_a_single_part_is_merged_already() -> None:
    table = pa.table({"key": [b"a"], "timestamp": [1], "stream_time": [1], "s0": [1], "s1": [1], "s2": [1]})
    assert merge_partials([table], PLAN, "p") is table

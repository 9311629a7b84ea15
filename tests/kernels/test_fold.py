"""Aggregates that take one record after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kernels.chunks import LANES, chunk_of, session_of, task_of
from kernels.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.expressions.function import Function
from potok.kernels.chunk import to_wire
from potok.kernels.expiry import NEVER
from potok.kernels.fold import FoldRecords
from potok.kernels.folders import folder_of
from potok.topology.nodes import Aggregation
from potok.topology.nodes.windows import tumbling_ms


class Basket:
    pass


def run(make: Any, values: list[Any], **options: Any) -> tuple[dict[Any, Any], list[tuple[str, str]]]:
    builder = StreamsBuilder("q")
    make(builder.stream("t").group_by_key()).to_stream().to("out")
    with InProcess(builder) as driver:
        for at, value in enumerate(values):
            driver.send("t", value, "k", timestamp=at)
        driver.run(**options)
        return driver.table("made").all(), driver.reasons()


def spoil(k: str, v: int, agg: list[int]) -> list[int]:
    """Changes the aggregate in place, and then may raise."""
    agg.append(v)
    if v % 2:
        raise ValueError("odd")
    return agg


@pytest.mark.parametrize("batch_records", [None, 1, 2])
def test_a_record_that_raises_leaves_the_aggregate_as_it_was(batch_records: int | None) -> None:
    found, reasons = run(lambda g: g.aggregate(list, spoil, name="made"), [1, 2, 3, 4, 5], batch_records=batch_records)
    assert found == {"k": [2, 4]}
    assert reasons == [("made", "error")] * 3


def test_failures_do_not_cost_a_replay_each(tmp_path: Path) -> None:
    calls = 0

    def count(k: str, v: int, agg: list[int]) -> list[int]:
        nonlocal calls
        calls += 1
        return spoil(k, v, agg)

    folder = folder_of(Aggregation("fold", Function.of(count, (3,)), []))
    operator = FoldRecords("f", task_of(), folder, None, pa.string(), None, session_of(tmp_path), NEVER, LANES)
    operator.receive(to_wire(chunk_of(pa.array([b"k"] * 200), list(range(200)))))
    operator.finish()
    assert calls <= 1_000


def add_in_place(one: Any, two: Any) -> Any:
    one["n"] += two["n"]
    one["all"] += two["all"]
    _ = 1 // (two["n"] - 13)
    return one


def test_a_reducer_that_changes_its_first_value_in_place_and_then_raises_changes_nothing() -> None:
    values = [{"n": n, "all": [n]} for n in (1, 2, 13, 4)]
    found, reasons = run(lambda g: g.reduce(add_in_place, name="made"), values)
    assert found == {"k": {"n": 7, "all": [1, 2, 4]}}
    assert reasons == [("made", "error")]


def test_a_key_whose_records_all_raise_has_no_row() -> None:
    assert run(lambda g: g.aggregate(0, lambda v, agg: 1 // 0, name="made"), [1])[0] == {}


def test_the_initial_value_is_not_shared_between_keys() -> None:
    builder = StreamsBuilder("q")
    builder.stream("t").group_by_key().aggregate([], lambda v, agg: agg.append(v) or agg, name="made")
    with InProcess(builder) as driver:
        for key in "aab":
            driver.send("t", 1, key, timestamp=1)
        driver.run()
        assert driver.table("made").all() == {"a": [1, 1], "b": [1]}


def test_a_first_value_of_none_stands_as_it_is() -> None:
    found, _ = run(lambda g: g.reduce(lambda one, two: [one, two], name="made"), [None, 1])
    assert found == {"k": [None, 1]}


def test_an_aggregate_that_is_no_data_is_a_dead_letter_and_not_the_end_of_the_query() -> None:
    found, reasons = run(lambda g: g.aggregate(0, lambda v, agg: Basket() if v else 5, name="made"), [0, 1])
    assert found == {"k": 5}
    assert reasons == [("made", "error")]


def test_an_aggregate_that_does_not_fit_its_declared_type_is_a_dead_letter() -> None:
    found, reasons = run(lambda g: g.aggregate(0, lambda v, agg: v, value=int, name="made"), [1, "text"])
    assert found == {"k": 1}
    assert reasons == [("made", "error")]


def test_latest_and_earliest_go_by_event_time_and_then_by_position() -> None:
    for order in ([1, 2, 3], [3, 2, 1], [2, 3, 1]):
        builder = StreamsBuilder("q")
        grouped = builder.stream("t").group_by_key()
        grouped.latest(name="last")
        grouped.earliest(name="first")
        with InProcess(builder) as driver:
            for at in order:
                driver.send("t", at, "k", timestamp=at)
            driver.send("t", "again", "k", timestamp=3)
            driver.run(1)
            assert driver.tables.snapshot() == {"last": {"k": "again"}, "first": {"k": 1}}


@pytest.mark.parametrize("kind", ["count", "latest"])
@pytest.mark.parametrize("batch_records", [None, 1])
def test_a_change_carries_the_stream_time_of_its_own_key(kind: str, batch_records: int | None) -> None:
    """Or records of one key would make those of another late, depending on the batches and on the shards."""
    builder = StreamsBuilder("q")
    table = getattr(builder.stream("t").group_by_key(), kind)(name="made")
    table.to_stream().group_by_key().windowed_by(tumbling_ms(10, 0, 1_000)).count(name="w")
    with InProcess(builder, shards=1) as driver:
        driver.send("t", 1, "a", timestamp=1)
        driver.send("t", 1, "b", timestamp=500)
        driver.run(batch_records)
        assert driver.reasons() == []
        assert len(driver.table("w").all()) == 2

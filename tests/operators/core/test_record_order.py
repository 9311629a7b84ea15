"""Where records stand among those of their batch, also when that is not by their positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from operators.core.chunks import chunk_of
from operators.core.in_process import InProcess
from potok import Processor, StreamsBuilder
from potok.operators.core.chunk import Chunk, concat, from_wire, gathered, in_order, to_wire
from potok.operators.core.record_order import by_position, by_time, of_turns, sorted_rows


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def timed(values: list[str], times: list[int]) -> Chunk:
    chunk = chunk_of(["k"] * len(values), list(values), times)
    return replace(chunk, order=by_time(chunk.timestamp, chunk.input_partition, chunk.offset))


def test_time_has_priority_over_position() -> None:
    assert in_order(timed(["a", "b", "c"], [2, 0, 1])).value == ["b", "c", "a"]
    assert in_order(replace(timed(["a", "b"], [1, 0]), order=None)).value == ["a", "b"]


def test_the_order_comes_along_wherever_records_go() -> None:
    chunk = timed(["a", "b", "c"], [2, 0, 1])
    taken = chunk.take(np.array([2, 0]))
    assert taken.order is not None and taken.order[:, 0].tolist() == [1, 2]
    assert in_order(from_wire(to_wire(chunk))).value == ["b", "c", "a"]
    assert in_order(concat([taken, chunk.take(np.array([1]))])).value == ["b", "c", "a"]


def test_records_ordered_by_position_precede_those_ordered_by_time() -> None:
    mixed = concat([timed(["b", "a"], [-1, -2]), chunk_of(["k", "k"], ["x", "y"])])
    assert in_order(mixed).value == ["x", "y", "a", "b"]


def test_derived_records_have_the_order_of_their_source_record() -> None:
    records = chunk_of(["k"] * 3, ["0", "1", "2"])
    rows = np.array([0, 2, 2])
    made = replace(
        records.take(rows), order=of_turns(by_position(records.input_partition, records.offset), rows, rows, rows < 0)
    )
    made.value = ["of 0", "of 2", "also of 2"]
    assert gathered([made, records]).value == ["of 0", "0", "1", "of 2", "also of 2", "2"]


def test_output_of_timers_is_ordered_by_time_among_records() -> None:
    records = by_position(ints(0, 0), ints(7, 8))
    early, late = (of_turns(records, ints(1, 2), times, ints(1, 1) > 0) for times in (ints(10, 20), ints(15, 25)))
    places = np.concatenate([late, records, early])
    found = sorted_rows(places, places[:, 1], places[:, 2])
    names = ["15 before 8", "25 behind", "record 7", "record 8", "10 before 8", "20 behind"]
    reported = [names[row] for row in found]
    assert reported == ["record 7", "10 before 8", "15 before 8", "record 8", "20 behind", "25 behind"]


def test_what_a_timer_makes_between_the_parts_of_one_record_stays_there() -> None:
    parts = by_position(ints(0, 0), ints(7, 7))
    made = of_turns(parts, ints(0, 0, 1, 1), ints(5, 9, 9, 9), ints(1, 0, 1, 0) > 0)
    assert sorted_rows(made, made[:, 1], made[:, 2]).tolist() == [0, 1, 2, 3]
    assert made[0, 3] < 0 and made[1:, 3].tolist() == [0, 0, 0]


class Ring(Processor):
    """Says how long ago the last record was, once."""

    def __init__(self, after: str) -> None:
        self.after = after

    def process(self, key: Any, value: Any, ctx: Any) -> None:
        ctx.schedule(after=self.after)

    def on_timer(self, key: Any, at: int, ctx: Any) -> Any:
        return [self.after]


@pytest.mark.parametrize("batch_records", [None, 1, 2])
def test_timers_of_several_steps_are_ordered_by_time_among_the_records_of_a_key(batch_records: int | None) -> None:
    builder = StreamsBuilder("q")
    records = builder.stream("in")
    slow, fast = (records.process_values(Ring(after), name=after.replace(" ", "")) for after in ("7 ms", "3 ms"))
    merged = records.merge(slow).merge(fast)
    merged.to_table(name="last")
    merged.group_by_key().collect_list(name="all")
    with InProcess(builder) as driver:
        for key, at in (("a", 10), ("b", 14), ("a", 20), ("b", 24), ("c", 28)):
            driver.send("in", at, key, timestamp=at)
            if batch_records == 1:
                driver.run()
        driver.run(batch_records)
        assert driver.table("last").all() == {"a": "7 ms", "b": "3 ms", "c": 28}
        ends = {"a": [10, "3 ms", "7 ms", 20, "3 ms", "7 ms"], "b": [14, "3 ms", "7 ms", 24, "3 ms"], "c": [28]}
        assert driver.table("all").all() == ends

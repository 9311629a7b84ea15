"""Records put in order of event time, in whole batches and by the operator alone."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators.core.chunks import INPUT_PARTITIONS, Catch, chunk_of, items, letters, session_of, task_of
from operators.core.in_process import InProcess
from potok import StreamsBuilder
from potok.errors import TopologyError
from potok.operators.core.chunk import Chunk
from potok.operators.core.dead_letters import DeadLetters, Reason
from potok.operators.core.operator import Task
from potok.operators.processors.time_ordered import OrderRecords
from potok.operators.windows.expiry import NEVER
from potok.topology.inference.infer import infer


def order(path: Path, batch: int, clock: int, chunks: list[Chunk], task: Task | None = None) -> tuple[list[Any], Any]:
    """One batch of the operator: the values that it lets go, and the operator."""
    session = session_of(path, batch)
    operator = OrderRecords("o", task or task_of(), 10, session, clock, INPUT_PARTITIONS, batch)
    caught = Catch()
    operator.downstream.append(caught)
    for chunk in chunks:
        operator.push(chunk)
    operator.finish()
    session.sweep(operator.state_tables)
    session.commit()
    return [value for chunk in caught.chunks for value in items(chunk.value)], operator


def test_records_wait_over_batches_and_leave_no_cell_behind(tmp_path: Path) -> None:
    first, step = order(tmp_path, 1, NEVER, [chunk_of(["a"] * 3, [3, 1, 2], [30, 21, 25])])
    assert (first, step.next_due()) == ([], 32)
    second, step = order(tmp_path, 2, 36, [chunk_of(["b"], [4], [37], first_offset=3)])
    assert (second, step.next_due()) == ([1, 2], 41)
    third, step = order(tmp_path, 3, 100, [])
    assert (third, step.next_due()) == ([3, 4], None)
    order(tmp_path, 4, 100, [])
    assert session_of(tmp_path, 5).store.entries("o/waiting") == 0


def test_a_run_of_records_is_released_in_parts_as_the_watermark_advances(tmp_path: Path) -> None:
    times = list(range(1000, 2000))
    random.Random(7).shuffle(times)
    chunk = chunk_of(pa.array(["k"] * 1000), pa.array(times), times)
    chunk.stream_time = np.array(times, np.int64)
    _, step = order(tmp_path, 1, NEVER, [chunk])
    found: list[int] = []
    for batch, clock in enumerate((1200, 1201, 1500, 1790, 3000), 2):
        made, step = order(tmp_path, batch, clock, [])
        assert made == list(range(made[0], made[-1] + 1)) and made[-1] == min(clock - 11, 1999)
        found += made
    assert found == sorted(times)
    assert step.next_due() is None


def test_a_value_that_is_not_data_is_set_aside_and_the_others_wait(tmp_path: Path) -> None:
    task = task_of()
    order(tmp_path, 1, NEVER, [chunk_of(["a", "b", "c"], [1, object(), 3], [5, 6, 7])], task)
    assert [(letter["step"], letter["offset"]) for letter in letters(task)] == [("o", "1")]
    assert order(tmp_path, 2, 100, [])[0] == [1, 3]


def test_held_records_keep_their_time_and_position(tmp_path: Path) -> None:
    headers = pa.array([None, [{"name": "h", "value": b"x"}]])
    order(tmp_path, 1, NEVER, [replace(chunk_of(["a", "b"], [1, 2], [5, 3], input_partition=1), headers=headers)])
    session = session_of(tmp_path, 2)
    operator = OrderRecords("o", task_of(), 10, session, 100, list(reversed(INPUT_PARTITIONS)), 2)
    caught = Catch()
    operator.downstream.append(caught)
    operator.finish()
    (chunk,) = caught.chunks
    assert chunk.timestamp.tolist() == chunk.stream_time.tolist() == [3, 5]
    assert chunk.input_partition.tolist() == [0, 0] and chunk.offset.tolist() == [1, 0]
    assert chunk.headers is not None and chunk.headers[0].as_py() == [{"name": "h", "value": b"x"}]


def test_an_attempt_that_never_committed_counts_for_nothing(tmp_path: Path) -> None:
    order(tmp_path, 1, NEVER, [chunk_of(["a", "a"], [1, 2], [5, 8])])
    order(tmp_path, 2, 17, [])
    again = OrderRecords("o", task_of(), 10, session_of(tmp_path, 2, epoch=2, ended={1: 1}), 17, INPUT_PARTITIONS, 2)
    caught = Catch()
    again.downstream.append(caught)
    again.finish()
    assert [value for _, value in caught.rows()] == [1]


@pytest.mark.parametrize("seed", range(6))
def test_the_order_depends_on_nothing_but_the_records(seed: int) -> None:
    choice = random.Random(seed)
    sent = [(choice.randrange(2), choice.choice("abc"), 100 + n * 3 + choice.randrange(-12, 13)) for n in range(40)]
    found = []
    for batch_records, shards in ((None, 1), (1, 2), (choice.randrange(2, 9), 3)):
        builder = StreamsBuilder("q")
        stream = builder.stream("in").select_key(lambda v: v["k"])
        ordered = stream.ordered("15 ms", name="o")
        ordered.map_values(lambda v: v["n"]).group_by_key().collect_list(name="all")
        with InProcess(builder, partitions={"in": 2}, shards=shards) as driver:
            for n, (partition, key, at) in enumerate(sent):
                driver.send("in", {"k": key, "n": n}, f"p{partition}", timestamp=at, partition=partition)
            driver.run(batch_records)
            if batch_records == 1:
                driver.restart()
            late = sorted((letter.partition, letter.offset) for letter in driver.dead_letters())
            found.append((driver.table("all").all(), late))
    assert found[0] == found[1] == found[2]
    for numbers in found[0][0].values():
        assert [sent[n][2] for n in numbers] == sorted(sent[n][2] for n in numbers)


def test_behind_it_a_fold_no_longer_depends_on_the_order_of_arrival() -> None:
    builder = StreamsBuilder("q")
    moved = builder.stream("in").select_key("user")
    moved.group_by_key().collect_list(name="as_they_come")
    moved.ordered("1 s", name="o").group_by_key().collect_list(name="in_order")
    topology = builder.build()
    steps = infer(topology)
    assert [steps[topology.node(name)].order_dependent for name in ("as_they_come", "in_order")] == [True, False]
    assert "ordered o: by event time, grace 1s" in builder.describe()


def test_a_grace_cannot_be_negative() -> None:
    with pytest.raises(TopologyError, match="negative"):
        StreamsBuilder("q").stream("in").ordered(-1)


def test_later_steps_have_a_watermark_that_is_held_back() -> None:
    builder = StreamsBuilder("q")
    source = builder.stream("in")
    twice = source.ordered("10 ms", name="a").ordered("5 ms", name="b")
    twice.merge(source).group_by_key().count(name="c")
    topology = builder.build()
    assert [topology.held_back_ms(topology.node(name)) for name in "abc"] == [0, 10, 15]


def test_a_dead_letter_of_a_record_missing_in_the_log_has_the_current_values() -> None:
    gone = DeadLetters(INPUT_PARTITIONS, lambda topic, partition, offsets: {}, 7)
    task = Task(gone)
    chunk = replace(chunk_of(["a"], [{"n": 1}]), raw_key=None, raw_value=None)
    gone.add(chunk, {0: "no"}, "step", Reason.ERROR)
    assert [(x["topic"], x["key"], x["value"]) for x in letters(task)] == [("a", b"a", b'{"n":1}')]

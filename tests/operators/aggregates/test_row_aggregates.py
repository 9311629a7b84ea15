"""Aggregates that take one record after the other."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from operators.core.chunks import INPUT_PARTITIONS, Catch, chunk_of, session_of, task_of
from operators.core.in_process import InProcess
from potok.dsl.builder import StreamsBuilder
from potok.expressions.function import Function
from potok.operators.aggregates.accumulate import UNTOUCHED, Folding
from potok.operators.aggregates.accumulators import accumulator_of
from potok.operators.aggregates.row_aggregates import AccumulateRecords
from potok.operators.core.chunk import to_wire
from potok.operators.core.operator import Task
from potok.operators.windows.expiry import NEVER
from potok.records.keys import encode_key
from potok.state.codec import UnreadableCell
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

    accumulator = accumulator_of(Aggregation("fold", Function.of(count, (3,)), []))
    operator = AccumulateRecords(
        "f", task_of(), accumulator, None, pa.string(), None, session_of(tmp_path), NEVER, INPUT_PARTITIONS
    )
    operator.receive(to_wire(chunk_of(pa.array([b"k"] * 200), list(range(200)))))
    operator.finish()
    assert calls <= 1_000


class Counted:
    """An aggregator that counts its calls: a list of the values, changed in place before it raises."""

    def __init__(self, fails: Callable[[int], bool]) -> None:
        self.calls, self._fails = 0, fails

    def __call__(self, k: str, v: int, agg: list[int]) -> list[int]:
        self.calls += 1
        agg.append(v)
        if self._fails(v):
            raise ValueError("refused")
        return agg


def cells_of(path: Path, aggregator: Any, keys: list[bytes], task: Task, **options: Any) -> dict[str, Any]:
    """What the cells hold after one batch of records with the values 0, 1, 2..."""
    accumulator = accumulator_of(Aggregation("fold", Function.of(aggregator, (3,)), []))
    session, caught = session_of(path), Catch()
    operator = AccumulateRecords(
        "f", task, accumulator, None, pa.string(), None, session, NEVER, INPUT_PARTITIONS, **options
    )
    operator.downstream.append(caught)
    operator.receive(to_wire(chunk_of(pa.array(keys, pa.binary()), list(range(len(keys))))))
    operator.finish()
    return dict(caught.rows())


MIXES: list[tuple[str, Callable[[int], bool]]] = [
    ("all", lambda v: True),
    ("half", lambda v: v % 2 == 1),
    ("few", lambda v: v % 97 == 5),
    ("first", lambda v: v == 0),
    ("last", lambda v: v == 1_999),
]


@pytest.mark.parametrize("fails", [mix for _, mix in MIXES], ids=[name for name, _ in MIXES])
@pytest.mark.parametrize("distinct", [1, 7, 500, 2_000])
@pytest.mark.parametrize("each_record", [False, True])
def test_failures_cost_a_bounded_number_of_calls_for_each_record(
    tmp_path: Path, fails: Callable[[int], bool], distinct: int, each_record: bool
) -> None:
    counted = Counted(fails)
    names = [f"k{row % distinct:04}" for row in range(2_000)]
    keys = [encode_key(name, pa.string()) or b"" for name in names]
    found = cells_of(tmp_path, counted, keys, task_of(), each_record=each_record)
    wanted: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        if not fails(row):
            wanted.setdefault(name, []).append(row)
    assert found == wanted
    assert counted.calls <= 4 * len(keys)


def test_failures_of_many_keys_look_at_no_record_of_another_key(tmp_path: Path) -> None:
    class Watched(list[int]):
        """The numbers of the cells, which counts how often one is looked at."""

        looks = 0

        def __getitem__(self, at: Any) -> Any:
            Watched.looks += 1
            return super().__getitem__(at)

    counted, count = Counted(lambda v: v % 3 > 0), 3_000
    accumulator = accumulator_of(Aggregation("fold", Function.of(counted, (3,)), []))
    ids = Watched(range(count))
    folding = Folding(accumulator, ids, ["k"] * count, list(range(count)), [None] * count, [None] * count)
    states: list[Any] = [UNTOUCHED] * count
    assert len(folding.run(states)) == 2_000
    assert Watched.looks <= 10 * count


def test_a_function_that_fails_when_it_is_called_again_is_a_dead_letter_and_not_the_end_of_the_query(
    tmp_path: Path,
) -> None:
    seen: set[int] = set()

    def once(v: int) -> bool:
        again = v in seen
        seen.add(v)
        return again or v == 3

    assert cells_of(tmp_path, Counted(once), [b"k"] * 5, task_of()) == {"k": [4]}


def test_a_state_that_is_not_data_when_another_record_fails_costs_only_its_own_record(tmp_path: Path) -> None:
    def spoil_state(k: str, v: int, agg: list[Any]) -> list[Any]:
        if v in (2, 3):
            raise ValueError("refused")
        agg.append(Basket() if v == 1 else v)
        return agg

    task = task_of()
    assert cells_of(tmp_path, spoil_state, [b"k"] * 5, task) == {"k": [0, 4]}
    assert len(task.dead_letters) == 3


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


def test_a_first_value_of_none_is_kept() -> None:
    found, _ = run(lambda g: g.reduce(lambda one, two: [one, two], name="made"), [None, 1])
    assert found == {"k": [None, 1]}


def test_an_aggregate_that_is_not_data_is_a_dead_letter_and_not_the_end_of_the_query() -> None:
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


class Attack:
    ran: ClassVar[list[str]] = []

    def __reduce__(self) -> Any:
        return Attack.ran.append, ("code of a stranger",)


def test_a_cell_that_a_stranger_wrote_stops_the_query_and_runs_nothing(tmp_path: Path) -> None:
    accumulator = accumulator_of(Aggregation("fold", Function.of(spoil, (3,)), []))
    first = session_of(tmp_path)
    first.write("f", [(b"k", pickle.dumps((0, Attack())), None)])
    first.commit()
    operator = AccumulateRecords(
        "f", task_of(), accumulator, None, pa.string(), None, session_of(tmp_path, batch=2), NEVER, INPUT_PARTITIONS
    )
    operator.receive(to_wire(chunk_of(pa.array([b"k"]), [2])))
    with pytest.raises(UnreadableCell, match="cannot be read"):
        operator.finish()
    assert Attack.ran == []

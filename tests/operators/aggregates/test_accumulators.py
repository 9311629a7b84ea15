"""How each aggregate takes one more record."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from potok.expressions.function import Function
from potok.operators.aggregates.accumulators import Accumulator, Rank, accumulator_of, result_of
from potok.operators.aggregates.accumulators import Latest as ByTime
from potok.records.value import Value
from potok.state.codec import dump_state, load_state
from potok.topology.nodes import Aggregation

Record = tuple[str, Any, Rank]


def fed(value: Any, at: int = 0, offset: int = 0) -> Record:
    return "k", value, (at, ("t", 0, offset))


def folded(accumulator: Accumulator, *records: Record) -> Any:
    state = accumulator.start()
    for record in records:
        state = load_state(dump_state(accumulator.add(state, *record)))
    return accumulator.result(state)


@pytest.mark.parametrize(
    ("kind", "result", "of_nulls"),
    [
        ("sum", 6, None),
        ("min", 1, None),
        ("max", 3, None),
        ("avg", 2.0, None),
        ("count_distinct", 3, 0),
        ("collect_list", [3, None, 1, 2], [None, None]),
        ("latest", 2, None),
        ("earliest", 3, None),
    ],
)
def test_a_named_aggregate_of_numbers_and_of_nothing_but_nulls(kind: str, result: Any, of_nulls: Any) -> None:
    accumulator = accumulator_of(Aggregation(kind))
    values = [fed(value, offset, offset) for offset, value in enumerate([3, None, 1, 2])]
    assert folded(accumulator, *values) == result
    assert folded(accumulator, fed(None), fed(None, offset=1)) == of_nulls
    state = accumulator.start()
    for record in values:
        state = accumulator.add(state, *record)
    assert result_of(kind)(state) == result


@pytest.mark.parametrize(
    "accumulator", [accumulator_of(Aggregation("latest")), accumulator_of(Aggregation("earliest")), ByTime()]
)
def test_the_order_of_arrival_does_not_matter(accumulator: Accumulator) -> None:
    records = [fed("a", 5, 0), fed("b", 5, 1), fed(None, 3, 2), fed("d", 9, 3)]
    assert len({folded(accumulator, *order) for order in permutations(records)}) == 1


@pytest.mark.parametrize("kind", ["min", "max"])
def test_nan_loses_against_any_number_in_any_order(kind: str) -> None:
    accumulator = accumulator_of(Aggregation(kind))
    records = [fed(float("nan")), fed(1.0), fed(2.0)]
    assert {folded(accumulator, *order) for order in permutations(records)} == {1.0 if kind == "min" else 2.0}


def test_lists_and_structs_are_distinguished_by_what_they_hold() -> None:
    accumulator = accumulator_of(Aggregation("count_distinct"))
    values = [[1, 2], [1, 2], [2, 1], {"a": 1, "b": 2}, {"b": 2, "a": 1}, Value({"a": 1, "b": 2}), "1", 1]
    assert folded(accumulator, *(fed(value) for value in values)) == 5


def test_a_mean_of_whole_numbers_is_exact() -> None:
    assert folded(accumulator_of(Aggregation("avg")), fed(1 << 60), fed((1 << 60) + 2)) == float((1 << 60) + 1)


def test_reduce_starts_with_the_first_value_unchanged() -> None:
    accumulator = accumulator_of(Aggregation("reduce", Function.of(lambda one, two: one + two, (2,))))
    assert folded(accumulator, fed(1)) == 1
    assert folded(accumulator, fed(1), fed(2), fed(3)) == 6
    assert folded(accumulator, fed(None)) is None


@pytest.mark.parametrize("arity", [2, 3])
def test_a_fold_takes_the_key_or_not(arity: int) -> None:
    call: Any = (lambda v, agg: agg + v) if arity == 2 else (lambda k, v, agg: agg + v)
    assert folded(accumulator_of(Aggregation("fold", Function.of(call, (2, 3)), 10)), fed(1), fed(2)) == 13


def test_a_fold_starts_with_a_copy_or_with_what_is_made_for_it() -> None:
    initial: list[int] = []
    add = Function.of(lambda v, agg: agg.append(v) or agg, (2,))
    assert folded(accumulator_of(Aggregation("fold", add, initial)), fed(1)) == [1]
    assert initial == []
    assert folded(accumulator_of(Aggregation("fold", add, [0], Function.of(list, (0,)))), fed(1)) == [1]

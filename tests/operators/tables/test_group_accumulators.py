"""What a group keeps of its rows: whatever came and went, what is left is that of the rows that are there."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from potok.operators.tables.group_accumulators import group_accumulator_of, in_order
from potok.state.codec import dump_state, load_state
from potok.topology.nodes import Aggregation

KINDS = ["count", "sum", "avg", "min", "max", "collect_list", "count_distinct"]
VALUES = {
    "whole numbers": [-3, 0, 1, 1, 7, 10**30, None],
    "floats": [0.1, 0.2, 1e300, -1e300, 1e-300, 3, None],
    "not finite": [math.inf, -math.inf, math.nan, 1.5, 2],
    "texts": ["a", "b", "10", "9"],
}


@pytest.mark.parametrize(
    ("kind", "values"),
    [(kind, values) for kind in KINDS for values in VALUES if values != "texts" or kind not in ("sum", "avg")],
)
def test_what_is_left_does_not_depend_on_what_has_been(kind: str, values: str) -> None:
    random, accumulator = Random(values), group_accumulator_of(Aggregation(kind), None)
    state, there = accumulator.start(), list[Any]()
    for _ in range(200):
        if there and random.random() < 0.5:
            state = accumulator.subtract(state, None, there.pop(random.randrange(len(there))))
        else:
            there.append(random.choice(VALUES[values]))
            state = accumulator.add(state, None, there[-1])
        state = load_state(dump_state(accumulator.stored(state)))
    fresh = accumulator.start()
    random.shuffle(there)
    for value in there:
        fresh = accumulator.add(fresh, None, value)
    assert repr(accumulator.result(state)) == repr(accumulator.result(fresh))


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("sum", [0.1] * 10, 1.0),
        ("sum", [1, 2], 3),
        ("sum", [1, 2.0], 3.0),
        ("sum", [1e308, 1e308], math.inf),
        ("sum", [None], None),
        ("sum", [], None),
        ("sum", [math.inf, 1.0], math.inf),
        ("avg", [1, 2], 1.5),
        ("avg", [0.1, 0.3], 0.2),
        ("avg", [None, 4], 4.0),
        ("min", [3, math.nan, 1], 1),
        ("max", [3, math.nan, 1], 3),
        ("min", [None], None),
        ("count", [None, 1], 2),
        ("count_distinct", [1, 1.0, True, None, 1], 3),
        ("collect_list", [3, None, 1, 3], [1, 3, 3, None]),
    ],
)
def test_each_kind_of_a_few_values(kind: str, values: list[Any], expected: Any) -> None:
    accumulator = group_accumulator_of(Aggregation(kind), None)
    state = accumulator.start()
    for value in values:
        state = accumulator.add(state, None, value)
    found = accumulator.result(state)
    assert (found, type(found)) == (expected, type(expected))


def test_incomparable_values_are_grouped_by_type() -> None:
    assert in_order(["x", 2, None, 1, {"a": 1}]) == [{"a": 1}, 1, 2, "x", None]

"""Folding the records of one window."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from potok.expressions.function import Function
from potok.operators.windows.window_assigners import Event
from potok.operators.windows.window_fold import FrameFold
from potok.topology.nodes import Aggregation


def events(*values: Any) -> list[Event]:
    return [Event(10 + n, ("t", 0, n), 0, value) for n, value in enumerate(values)]


def fold(initial: Any, function: Any, type_: pa.DataType | None = None) -> FrameFold:
    make = Function.of(initial, (0,)) if callable(initial) else None
    return FrameFold(Aggregation("fold", Function.of(function, (2, 3)), initial, make), type_)


def folded(folding: FrameFold, given: list[Event]) -> tuple[Any, list[int]]:
    """The result, and the numbers of those that failed."""
    data, failures = folding.fold("key", given)
    return folding.result(data) if data else None, [given.index(event) for event in failures]


def test_records_are_folded_in_the_order_they_are_given() -> None:
    assert folded(fold("", lambda k, v, agg: agg + k[0] + v), events("a", "b")) == ("kakb", [])


def test_failures_are_reported() -> None:
    assert folded(fold(0, lambda v, agg: agg + 6 // v), events(1, 0, 2, 0)) == (9, [1, 3])


def test_a_failure_leaves_no_trace_in_the_aggregate() -> None:
    def add(v: int, agg: list[int]) -> list[int]:
        agg.append(v)
        return agg if v else 1 / 0  # type: ignore[return-value]

    assert folded(fold(list, add), events(1, 0, 2)) == ([1, 2], [1])


def test_an_initializer_that_raises_fails_every_record() -> None:
    assert folded(fold(lambda: 1 // 0, lambda v, agg: agg), events(1, 2)) == (None, [0, 1])


def test_what_a_function_does_to_a_value_is_not_seen_by_the_next_fold() -> None:
    def spoil(v: dict[str, Any], agg: int) -> int:
        agg += v.pop("n")
        return agg

    given = events({"n": 1}, {"n": 2})
    folding = fold(0, spoil)
    assert folded(folding, given) == folded(folding, given) == (3, [])


def test_a_value_has_its_fields_as_attributes() -> None:
    assert folded(fold(0, lambda v, agg: agg + v.n), events({"n": 1}, {"n": 2})) == (3, [])


def test_a_result_that_does_not_fit_the_type_is_a_failure_of_the_record_that_led_to_it() -> None:
    folding = fold(0, lambda v, agg: agg + v, pa.int64())
    assert folded(folding, events(1, 1 << 63, 2)) == (3, [1])


def test_a_result_that_is_not_data_is_a_failure() -> None:
    assert folded(fold(0, lambda v, agg: object() if v == 2 else agg + v), events(1, 2, 4)) == (5, [1])


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("count", 3),
        ("sum", 7),
        ("min", 1),
        ("max", 4),
        ("avg", 7 / 3),
        ("collect_list", [4, 1, 2]),
        ("count_distinct", 3),
        ("latest", 2),
        ("earliest", 4),
    ],
)
def test_every_named_kind_is_folded(kind: str, result: Any) -> None:
    folding = FrameFold(Aggregation(kind), None)
    assert folded(folding, events(4, 1, 2)) == (result, [])

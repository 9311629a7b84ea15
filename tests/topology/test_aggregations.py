"""How an aggregation is computed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from potok.expressions.function import Function
from potok.expressions.functions import greatest, least
from potok.topology.aggregations import AggregatePlan, plan_aggregation
from potok.topology.nodes import Aggregation

VALUE = pa.struct([("n", pa.int64()), ("x", pa.float64()), ("s", pa.string()), ("small", pa.int32())])
KEY = pa.string()


def plan(kind: str, function: Any = None, initial: object = None, value: pa.DataType | None = VALUE) -> AggregatePlan:
    arity = {"fold": (2, 3), "reduce": (2,)}.get(kind, (1, 2))
    chosen = None if function is None else Function.of(function, arity)
    return plan_aggregation(Aggregation(kind, chosen, initial), KEY, value)


def ops(found: AggregatePlan) -> list[tuple[str, pa.DataType]]:
    return [(slot.op, slot.type) for slot in found.slots]


def test_a_count_is_one_slot_that_looks_at_nothing() -> None:
    found = plan("count", value=None)
    assert found.native and ops(found) == [("count", pa.int64())] and found.slots[0].expr is None


@pytest.mark.parametrize("kind", ["sum", "min", "max"])
@pytest.mark.parametrize(("field", "type_"), [("n", pa.int64()), ("x", pa.float64())])
def test_numbers_merge(kind: str, field: str, type_: pa.DataType) -> None:
    found = plan(kind, lambda v: v[field])
    assert ops(found) == [(kind, type_)] and found.result == type_


def test_a_mean_is_a_sum_and_a_count() -> None:
    found = plan("avg", lambda v: v["n"])
    assert ops(found) == [("sum", pa.int64()), ("count", pa.int64())] and found.result == pa.float64()


@pytest.mark.parametrize("field", ["s", "small"])
def test_other_types_are_kept_row_by_row_and_say_so(field: str) -> None:
    found = plan("max", lambda v: v[field])
    assert not found.native and "row by row" in found.reason


@pytest.mark.parametrize("kind", ["latest", "earliest", "collect_list", "count_distinct"])
def test_what_does_not_merge_is_kept_row_by_row(kind: str) -> None:
    found = plan(kind, lambda v: v["n"])
    assert not found.native and found.selector is not None
    assert found.order_dependent is (kind == "collect_list")


def test_dynamic_values_are_folded_row_by_row() -> None:
    assert "dynamic" in plan("sum", lambda v: v["n"], value=None).reason
    assert "dynamic" in plan("fold", lambda k, v, agg: agg + 1, 0, value=None).reason
    assert "dynamic" in plan("latest", value=None).reason


def test_a_traced_fold_has_a_slot_for_each_term() -> None:
    found = plan(
        "fold",
        lambda k, v, agg: {
            "n": agg["n"] + 1,
            "total": agg["total"] + v["x"],
            "low": least(agg["low"], v["n"]),
            "high": greatest(agg["high"], v["n"]),
        },
        {"n": 0, "total": 0.0, "low": 10, "high": 0},
    )
    assert found.fields == ("n", "total", "low", "high")
    assert [slot.op for slot in found.slots] == ["sum", "sum", "min", "max"]
    assert [slot.initial for slot in found.slots] == [0, 0.0, 10, 0]


def test_a_fold_of_numbers_that_starts_with_a_whole_one_becomes_a_float() -> None:
    assert plan("fold", lambda v, agg: agg + v["x"], 0).result == pa.float64()


@pytest.mark.parametrize(
    ("function", "initial"),
    [
        (lambda k, v, agg: [*agg, v["n"]], []),
        (lambda k, v, agg: agg * v["n"], 1),
        (lambda k, v, agg: agg + v["s"], ""),
        (lambda k, v, agg: v["n"], 0),
        (lambda k, v, agg: {"in": {"n": agg["in"]["n"] + 1}}, {"in": {"n": 0}}),
    ],
)
def test_other_folds_run_as_python_and_depend_on_the_order(function: Any, initial: object) -> None:
    found = plan("fold", function, initial)
    assert not found.native and found.reason and found.order_dependent


def test_a_reducer_runs_as_python() -> None:
    found = plan("reduce", lambda a, b: a)
    assert not found.native and found.order_dependent

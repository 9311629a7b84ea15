"""Calling the user's functions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators.core.chunks import chunk_of, items
from potok.expressions.function import Function
from potok.expressions.tracing.trace import Argument, Traced, trace
from potok.operators.core.call import call_each, call_python, call_traced, patch, plain, truth
from potok.records.record import Record
from potok.records.value import Value

VALUE = pa.struct([("n", pa.int64())])


class Point(Record):
    x: int


@dataclass
class Pair:
    a: int
    b: int


class NoTruth:
    def __bool__(self) -> bool:
        raise ValueError("neither true nor false")


def function(call: Any) -> Function:
    return Function.of(call, (1, 2))


def test_functions_see_fields_by_item_and_by_attribute() -> None:
    chunk = chunk_of(["k"], [{"n": 1}])
    assert call_python(function(lambda k, v: (k, v["n"], v.n)), chunk) == ([("k", 1, 1)], {})


def test_a_row_that_raises_does_not_stop_the_others() -> None:
    results, errors = call_python(function(lambda v: 6 // v), chunk_of(["a", "b", "c"], [3, 0, 2]))
    assert results == [2, None, 3]
    assert list(errors) == [1] and "ZeroDivisionError" in errors[1]


def test_an_error_without_a_message_is_reported_by_its_class() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    def fail(value: Any) -> Any:
        raise Silent

    _, errors = call_python(function(fail), chunk_of(["a"], [1]))
    assert errors[0].startswith("Silent")


@pytest.mark.parametrize("arity", [1, 2])
def test_every_row_may_raise(arity: int) -> None:
    call: Any = (lambda v: 1 // 0) if arity == 1 else (lambda k, v: 1 // 0)
    results, errors = call_python(function(call), chunk_of(["a", "b"], [1, 2]))
    assert results == [None, None] and sorted(errors) == [0, 1]


def test_a_function_that_raises_stop_iteration_fails_for_its_row_only() -> None:
    def stop(v: int) -> int:
        if v == 2:
            raise StopIteration
        return v

    results, errors = call_python(function(stop), chunk_of(["a"] * 3, [1, 2, 3]))
    assert results == [1, None, 3] and list(errors) == [1]


@pytest.mark.parametrize(
    ("value", "data"), [(Value({"a": 1}), {"a": 1}), (Point(x=1), {"x": 1}), (Pair(1, 2), {"a": 1, "b": 2}), (3, 3)]
)
def test_results_become_plain_data(value: Any, data: Any) -> None:
    assert plain(value) == data and type(plain(value)) is type(data)


def traced(call: Any) -> tuple[Any, Function]:
    chosen = function(call)
    found = trace(chosen, [Argument("value", VALUE)])
    assert isinstance(found, Traced)
    return found.expr, chosen


def test_where_arrow_cannot_be_trusted_python_decides() -> None:
    expr, chosen = traced(lambda v: 12 // v["n"])
    called = call_traced(expr, chosen, chunk_of(["a"] * 3, pa.array([{"n": 3}, {"n": 0}, {"n": -5}], VALUE)), None)
    assert items(called.column) == [4, None, -3]
    assert list(called.errors) == [1]


def test_a_result_that_its_type_cannot_hold_is_an_error_of_its_row() -> None:
    column, errors = patch(pa.array([1, 2, 3]), np.array([0, 2]), [10, 1 << 70])
    assert column.to_pylist() == [10, 2, None] and list(errors) == [2]


def test_truth_is_that_of_python() -> None:
    values = [0, 1, "", "x", [], None, 0.0]
    mask, errors = truth(None, function(lambda v: v), chunk_of(["k"] * len(values), values), None)
    assert mask.tolist() == [bool(value) for value in values] and errors == {}


def test_a_result_that_is_neither_true_nor_false_is_an_error_of_its_row() -> None:
    mask, errors = truth(None, function(lambda v: NoTruth() if v else True), chunk_of(["k"] * 2, [0, 1]), None)
    assert mask.tolist()[0] is True
    assert list(errors) == [1]


def test_truth_does_not_ask_whether_a_number_fits_its_type() -> None:
    expr, chosen = traced(lambda v: v["n"] * v["n"])
    mask, errors = truth(expr, chosen, chunk_of(["k"], pa.array([{"n": 1 << 40}], VALUE)), None)
    assert (mask.tolist(), errors) == ([True], {})


def test_errors_of_functions_are_reported_with_their_line() -> None:
    def large(v: Any) -> Any:
        return v["amount"] > 100

    _, errors = call_each(large, [{"amount": 1}, {}])
    place = f"{__file__}:{large.__code__.co_firstlineno + 1}"
    assert errors == {1: f"""KeyError: 'amount', at {place}: return v["amount"] > 100"""}


def test_the_line_is_that_of_the_program_and_not_of_what_it_calls() -> None:
    def parse(v: str) -> Any:
        return json.loads(v)

    _, errors = call_each(parse, ["{"])
    assert errors[0].endswith(f"at {__file__}:{parse.__code__.co_firstlineno + 1}: return json.loads(v)")

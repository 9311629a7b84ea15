"""Expressions that somebody else computes: whole columns, single rows, nulls as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.columnar import function_of
from potok.expressions.computed import Computed
from potok.expressions.evaluate import evaluate
from potok.expressions.expr import Column, StructExpr, fields
from potok.expressions.failures import RowFailures, add_rows
from potok.expressions.row import evaluate_row
from potok.expressions.tracing.trace import Argument, Traced, trace

VALUE = pa.struct([("a", pa.int64()), ("b", pa.int64())])


@dataclass(frozen=True)
class Sum:
    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        assert all(len(column) == rows for column in columns)
        return pc.add(*columns)


A, B = (Column(pa.int64(), "value", (name,)) for name in "ab")
TOTAL = Computed(pa.int64(), (A, B), Sum(), "a + b")


def test_no_row_is_suspect_not_even_where_the_whole_value_is_missing() -> None:
    values = pa.array([{"a": 1, "b": 2}, {"a": None, "b": 2}, None], VALUE)
    found = evaluate(TOTAL, {"value": values}, 3)
    assert found.column.to_pylist() == [3, None, None]
    assert found.suspect is None


def test_a_single_row_returns_the_same() -> None:
    assert [evaluate_row(TOTAL, {"value": row}) for row in ({"a": 1, "b": 2}, {"a": None, "b": 2}, None)] == [
        3,
        None,
        None,
    ]


def test_it_may_be_nested_in_a_struct_and_lists_the_fields_it_reads() -> None:
    whole = StructExpr(pa.struct([("t", pa.int64())]), (("t", TOTAL),))
    values = pa.array([{"a": 1, "b": 2}, None], VALUE)
    assert evaluate(whole, {"value": values}, 2).column.to_pylist() == [{"t": 3}, {"t": None}]
    assert fields(whole) == {"a", "b"}


def test_a_function_of_it_is_traced_without_being_called() -> None:
    function = function_of(TOTAL, "a + b")
    traced = trace(function, (Argument("key", None), Argument("value", VALUE)))
    assert isinstance(traced, Traced)
    assert traced.expr is TOTAL
    assert function("k", {"a": 3, "b": 4}) == 7
    assert function.source == "a + b"


@dataclass(frozen=True)
class OnlyPositive:
    def __call__(self, columns: Sequence[pa.Array], rows: int, failures: RowFailures) -> pa.Array:
        bad = [row for row, value in enumerate(columns[0].to_pylist()) if value < 0]
        if bad:
            add_rows(failures, "positive(a)", dict.fromkeys(bad, "it is negative"))
        return pc.if_else(pc.less(columns[0], 0), None, columns[0])


def test_the_rows_that_failed_are_part_of_the_result_and_count_once() -> None:
    part = Computed(pa.int64(), (A,), OnlyPositive(), "positive(a)")
    twice = StructExpr(pa.struct([("x", pa.int64()), ("y", pa.int64())]), (("x", part), ("y", part)))
    values = pa.array([{"a": 1, "b": 1}, {"a": -1, "b": 1}, {"a": -2, "b": 1}], VALUE)
    found = evaluate(twice, {"value": values}, 3)
    assert found.failures == {"positive(a)": {1: "it is negative", 2: "it is negative"}}
    assert evaluate(twice, {"value": values.slice(0, 1)}, 1).failures == {}

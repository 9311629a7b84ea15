"""Which rows are suspect, and which must not be: a clean column costs no mask and no second run."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from expressions.agreement import assert_agrees, traced
from expressions.grammar import BASE
from expressions.rows import Rows
from potok.expressions import Argument, Evaluated, evaluate
from potok.expressions.functions import between, coalesce, contains, greatest, isin, length, not_, when


def run(function: Callable[[Any], Any], type_: pa.DataType, values: list[Any]) -> tuple[list[Any], list[int]]:
    """The results, and the positions of the suspect rows."""
    found = evaluate_over(function, pa.array(values, type_))
    suspect = [] if found.suspect is None else found.suspect.to_pylist()
    return found.column.to_pylist(), [index for index, doubtful in enumerate(suspect) if doubtful]


def evaluate_over(function: Callable[[Any], Any], column: pa.Array) -> Evaluated:
    return evaluate(traced(function, Argument("value", column.type)), {"value": column}, len(column))


PAIR = pa.struct([("a", pa.int64()), ("b", pa.int64())])


def pairs(*rows: tuple[int | None, int | None]) -> list[dict[str, int | None]]:
    return [{"a": a, "b": b} for a, b in rows]


TAME = {
    "compare": lambda k, v: v.f > 100,
    "int arithmetic": lambda k, v: v.i * 2 + v.j - 1,
    "float arithmetic": lambda k, v: v.f * v.i / 3,
    "floor division": lambda k, v: (v.i // 3) + (v.i % 7),
    "mixed comparison": lambda k, v: v.i > v.f,
    "power": lambda k, v: v.i**3,
    "spread": lambda k, v: {**v, "status": "X"},
    "text": lambda k, v: v.s.strip() + v.t,
    "logic": lambda k, v: (v.b & v.c) | (v.i == 1),
    "functions": lambda k, v: when(isin(v.i, [1, 2]), length(v.s), 0),
    "instants": lambda k, v: (v.at - BASE).total_seconds(),
    "membership": lambda k, v: contains(v.words, "a") | contains(v.s, "b") | not_(v.m),
    "between": lambda k, v: between(v.i, -5, 5.5),
}


@pytest.mark.parametrize("name", TAME)
def test_clean_columns_have_no_suspects(name: str) -> None:
    rows = next(rows for rows in map(Rows, range(100)) if rows._tame and rows._missing == 0)
    keys, values = rows.keys(30), rows.values(30)
    assert assert_agrees(TAME[name], keys, values, traced(TAME[name])) == []


def test_none_is_suspect_where_python_raises() -> None:
    rows = pairs((1, 2), (None, 2), (1, None), (None, None))
    assert run(lambda v: v.a + v.b, PAIR, rows)[1] == [1, 2, 3]
    assert run(lambda v: v.a < v.b, PAIR, rows)[1] == [1, 2, 3]
    assert run(lambda v: -v.a, PAIR, rows)[1] == [1, 3]


def test_none_passes_where_python_takes_it_as_it_comes() -> None:
    rows = pairs((1, 2), (None, 2), (None, None))
    assert run(lambda v: v.a, PAIR, rows) == ([1, None, None], [])
    assert run(lambda v: v.a == v.b, PAIR, rows) == ([False, False, True], [])
    assert run(lambda v: v.a != v.b, PAIR, rows) == ([True, True, False], [])
    assert run(lambda v: v.a != None, PAIR, rows) == ([True, False, False], [])  # noqa: E711
    assert run(lambda v: [v.a], PAIR, rows) == ([[1], [None], [None]], [])
    assert run(lambda v: coalesce(v.a, v.b), PAIR, rows) == ([1, 2, None], [])
    assert run(lambda v: greatest(v.a, v.b), PAIR, rows) == ([2, 2, None], [])


def test_a_field_of_a_missing_struct_is_suspect() -> None:
    nested = pa.struct([("in", PAIR)])
    rows = [{"in": {"a": 1, "b": 2}}, {"in": None}, None]
    assert run(lambda v: v["in"].a, nested, rows)[1] == [1, 2]
    assert run(lambda v: v["in"], nested, rows)[1] == [2]
    assert run(lambda v: v, nested, rows)[1] == []
    assert run(lambda v: {**v, "x": 1}, nested, rows)[1] == [2]


@pytest.mark.parametrize(
    ("function", "a", "b"),
    [
        (lambda v: v.a + v.b, 2**63 - 1, 1),
        (lambda v: v.a - v.b, -(2**63), 1),
        (lambda v: v.a - v.b, 0, -(2**63)),
        (lambda v: v.a * v.b, 2**32, 2**31),
        (lambda v: v.a * v.b, -(2**63), -1),
        (lambda v: v.a // v.b, -(2**63), -1),
        (lambda v: -v.a, -(2**63), 0),
        (lambda v: v.a**7, 1000, 0),
        (lambda v: v.a / v.b, 1, 0),
        (lambda v: v.a // v.b, 1, 0),
        (lambda v: v.a % v.b, 1, 0),
        (lambda v: v.a / v.b, 2**53 + 1, 1),
        (lambda v: v.a > 0.5, 2**53 + 1, 1),
    ],
)
def test_only_the_row_that_leaves_the_exact_range_is_suspect(function: Any, a: int, b: int) -> None:
    results, suspects = run(function, PAIR, pairs((6, 3), (a, b), (-6, 3)))
    assert suspects == [1]
    assert [results[0], results[2]] == [function(_Pair(6, 3)), function(_Pair(-6, 3))]


class _Pair:
    def __init__(self, a: int, b: int) -> None:
        self.a, self.b = a, b


def test_integer_results_reach_the_ends_of_64_bits_without_suspicion() -> None:
    rows = pairs((2**63 - 2, 1), (-(2**63) + 1, -1))
    assert run(lambda v: v.a + v.b, PAIR, rows) == ([2**63 - 1, -(2**63)], [])


def test_division_and_remainder_round_down_for_negative_numbers() -> None:
    rows = pairs((7, 2), (-7, 2), (7, -2), (-7, -2))
    assert run(lambda v: v.a // v.b, PAIR, rows)[0] == [3, -4, -4, 3]
    assert run(lambda v: v.a % v.b, PAIR, rows)[0] == [1, 1, -1, -1]


def test_nan_is_unequal_to_itself_and_loses_against_numbers() -> None:
    values = [math.nan, 1.0]
    assert run(lambda v: v == v, pa.float64(), values) == ([False, True], [])
    assert run(lambda v: greatest(v, 0.5), pa.float64(), values) == ([0.5, 1.0], [])


def test_an_index_out_of_range_is_suspect() -> None:
    lists = [[1, 2], [], None, [3]]
    assert run(lambda v: v[1], pa.list_(pa.int64()), lists) == ([2, None, None, None], [1, 2, 3])
    assert run(lambda v: v[-1], pa.list_(pa.int64()), lists) == ([2, None, None, 3], [1, 2])
    assert run(lambda v: v[0], pa.string(), ["ab", "", "é"])[1] == [1]


def test_a_missing_map_entry_is_suspect_and_get_returns_none() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    maps = [[("a", 1), ("a", 2)], [("b", 1)], []]
    assert run(lambda v: v["a"], kind, maps) == ([2, None, None], [1, 2])
    assert run(lambda v: v.get("a"), kind, maps) == ([2, None, None], [])
    assert run(lambda v: v.get("a", 7), kind, maps) == ([2, 7, 7], [])
    assert run(lambda v: v.get("a", 7), kind, [[("a", None)], []])[1] == [0, 1]


def test_text_beyond_ascii_is_suspect_only_where_case_is_concerned() -> None:
    texts = ["abc", "straße", None, "ΑΣ"]
    assert run(lambda v: v.upper(), pa.string(), texts)[1] == [1, 2, 3]
    assert run(lambda v: v.isalpha(), pa.string(), texts)[1] == [1, 2, 3]
    assert run(lambda v: v[1:3], pa.string(), texts)[1] == [2]
    assert run(lambda v: v.replace("ß", "ss"), pa.string(), texts) == (["abc", "strasse", None, "ΑΣ"], [2])


def test_values_of_different_kinds_are_never_equal() -> None:
    assert run(lambda v: v == 1, pa.string(), ["1", None]) == ([False, False], [])
    assert run(lambda v: v != 1, pa.string(), ["1", None]) == ([True, True], [])


def test_an_instant_that_no_datetime_can_hold_is_suspect() -> None:
    last = pa.scalar(datetime.max, pa.timestamp("us")).value
    column = pa.array([0, last, last + 1], pa.int64()).cast(pa.timestamp("us"))
    limit = datetime(2000, 1, 1)
    for function in (lambda v: v > limit, lambda v: v.year, lambda v: (v - limit).total_seconds()):
        suspect = evaluate_over(function, column).suspect
        assert suspect.to_pylist()[0] is False
        assert suspect.to_pylist()[2] is True


def test_dates_compare_with_constants() -> None:
    day = date(2024, 2, 29)
    assert run(lambda v: v >= day, pa.date32(), [day, day - timedelta(days=1)]) == ([True, False], [])


def test_small_types_are_widened_before_they_are_computed_with() -> None:
    assert run(lambda v: v + v, pa.int8(), [100, -128]) == ([200, -256], [])
    assert run(lambda v: v * 10.0, pa.float32(), [0.5]) == ([5.0], [])
    assert run(lambda v: v, pa.int8(), [100]) == ([100], [])


def test_a_struct_with_only_the_fields_that_are_read_will_do() -> None:
    wide = pa.struct([("a", pa.int64()), ("b", pa.int64()), ("c", pa.string())])
    expr = traced(lambda v: v.b + 1, Argument("value", wide))
    narrow = pa.array([{"b": 1}], pa.struct([("b", pa.int64())]))
    assert evaluate(expr, {"value": narrow}, 1).column.to_pylist() == [2]


def test_a_constant_fills_every_row() -> None:
    assert run(lambda v: "X", pa.int64(), [1, None]) == (["X", "X"], [])
    assert run(lambda v: {"a": 1}, pa.int64(), [1, 2]) == ([{"a": 1}, {"a": 1}], [])


def test_a_tuple_is_evaluated_item_by_item_or_as_a_struct() -> None:
    expr = traced(lambda v: (v.a, "x"), Argument("value", PAIR))
    columns = {"value": pa.array(pairs((1, 2)), PAIR)}
    assert [evaluate(item, columns, 1).column.to_pylist() for item in expr.children] == [[1], ["x"]]
    assert evaluate(expr, columns, 1).column.to_pylist() == [{"0": 1, "1": "x"}]


def test_no_rows_return_no_rows() -> None:
    found = evaluate_over(lambda v: {**v, "x": v.a // v.b}, pa.array([], PAIR))
    assert len(found.column) == 0
    assert found.suspect is None

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from potok.records.rows import column_of, rows_of
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.records.value import Value
from records.arrays import columns


@settings(max_examples=200)
@given(columns())
def test_rows_become_a_column_and_come_back(case: tuple[Schema, list[Any], pa.Array]) -> None:
    schema, rows, column = case
    assert column.type == schema.arrow
    column.validate(full=True)
    assert repr(rows_of(column)) == repr(rows)


def test_structs_are_values_at_every_depth() -> None:
    (row,) = rows_of(pa.array([{"a": {"b": [{"c": 1}]}}]))
    assert type(row) is Value
    assert row.a.b[0].c == 1


def test_a_dynamic_column_has_its_dicts_wrapped() -> None:
    rows = rows_of([{"a": 1}, 5, None])
    assert rows == [{"a": 1}, 5, None]
    assert type(rows[0]) is Value


def test_a_chunked_column_is_one_list() -> None:
    assert rows_of(pa.chunked_array([pa.array([1]), pa.array([2])])) == [1, 2]


@dataclass
class Point:
    x: int
    y: float


class State(str, enum.Enum):  # noqa: UP042 - whose str() is not its text
    PAID = "paid"


@pytest.mark.parametrize(
    ("declared", "given", "kept"),
    [
        ("x int, y double", Point(1, 2), {"x": 1, "y": 2.0}),
        ("x int", {"x": 1, "more": 2}, {"x": 1}),
        ("x int", Value(x=1.0), {"x": 1}),
        ("double", 2**60, float(2**60)),
        ("double", Decimal("1.5"), 1.5),
        ("bigint", np.int64(5), 5),
        ("double", np.float32(0.5), 0.5),
        ("boolean", np.bool_(True), True),
        ("string", State.PAID, "paid"),
        ("array<int>", (1, 2), [1, 2]),
        ("array<int>", {2, 1}, [1, 2]),
        ("decimal(5,2)", 1.5, Decimal("1.50")),
        ("timestamp", dt.datetime(2025, 1, 1), dt.datetime(2025, 1, 1, tzinfo=dt.UTC)),
        ("binary", bytearray(b"x"), b"x"),
    ],
)
def test_an_object_that_means_the_same_is_taken(declared: str, given: object, kept: object) -> None:
    schema = declared_schema(declared)
    assert schema is not None
    fitted = column_of([None, given], schema)
    assert fitted.errors == {}
    assert rows_of(fitted.column) == [None, kept]


@pytest.mark.parametrize(
    ("declared", "given", "reason"),
    [
        ("x int not null", {}, 'field "x" is missing or null'),
        ("x int", 5, "the value: expected struct<x: int>, got number 5"),
        ("x tinyint", {"x": 128}, 'field "x": 128 is out of the range of tinyint'),
        ("bigint", True, "the value: expected bigint, got boolean true"),
        ("bigint", "5", 'the value: expected bigint, got string "5"'),
        ("string", 5, "the value: expected string, got number 5"),
        ("string", "\ud800", "the value: expected string, got text with a lone surrogate"),
        ("binary", "x", 'the value: expected binary, got string "x"'),
        ("date", dt.datetime(2025, 1, 1), "the value: expected date, got datetime "),
        ("timestamp", "2025-01-01", 'the value: expected timestamp, got string "2025-01-01"'),
        ("timestamp", 5, "the value: expected timestamp, got number 5"),
        ("decimal(3,2)", Decimal("10"), "the value: 10 does not fit decimal(3,2)"),
        ("decimal(3,2)", Decimal("NaN"), "the value: NaN does not fit decimal(3,2)"),
        ("float", 1e39, "the value: 1e+39 is out of the range of float"),
        ("double", 10**400, "the value: 1000"),
        ("array<int not null>", [1, None], 'field "[]" is null'),
        ("map<string, int>", {5: 1}, 'field "{}": expected string, got number 5'),
        ("map<string, int>", {None: 1}, 'field "{}": expected a key of type string, got null'),
    ],
)
def test_an_object_that_does_not_fit_is_an_error_of_its_row_alone(declared: str, given: object, reason: str) -> None:
    schema = declared_schema(declared)
    assert schema is not None
    fitted = column_of([None, given, None], schema)
    assert fitted.column.to_pylist() == [None, None, None]
    assert list(fitted.errors) == [1]
    assert fitted.errors[1].startswith(reason)


def test_the_rows_around_a_bad_one_are_kept() -> None:
    schema = declared_schema("tags array<string>, a struct<b: bigint>")
    assert schema is not None
    good = {"tags": ["x"], "a": {"b": 1}}
    fitted = column_of([good, {"tags": ["x", 5]}, good, {"a": {"b": "z"}}, good], schema)
    assert rows_of(fitted.column) == [good, None, good, None, good]
    assert fitted.errors == {
        1: 'field "tags[]": expected string, got number 5',
        3: 'field "a.b": expected bigint, got string "z"',
    }


def test_structs_come_with_the_fields_that_are_asked_for() -> None:
    column = pa.array([{"a": 1, "b": 2}, None, {"a": 3, "b": None}])
    assert rows_of(column, {"b", "c"}) == [{"b": 2}, None, {"b": None}]
    assert rows_of(column, ()) == [{}, None, {}]
    assert rows_of(column) == [{"a": 1, "b": 2}, None, {"a": 3, "b": None}]

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

import orjson
import pyarrow as pa
import pytest

from potok import Record
from potok.errors import SchemaError
from potok.records.formats.json.json_format import JsonFormat
from potok.records.schemas.declared_schema import declared_schema

JSON = JsonFormat()


@dataclass
class Point:
    x: int


class Order(Record):
    order_id: str
    amount: float


def test_without_a_schema_any_json_becomes_a_python_object() -> None:
    decoded = JSON.decode(pa.array([b'{"a":1}', b"[1,2]", b'"x"', None, b"null", b"1.5"], pa.binary()), None)
    assert decoded.column == [{"a": 1}, [1, 2], "x", None, None, 1.5]
    assert decoded.errors == {}


def test_without_a_schema_bad_json_is_an_error_of_its_row() -> None:
    decoded = JSON.decode(pa.array([b"{", b"1", b"", b"\xff", b"[" * 10_000], pa.binary()), None)
    assert decoded.column == [None, 1, None, None, None]
    assert decoded.errors.keys() == {0, 2, 3, 4}
    assert decoded.errors[2] == "the value is empty"


def test_only_the_asked_columns_are_read_and_checked() -> None:
    schema = declared_schema(Order)
    values = pa.array([b'{"order_id":5,"amount":1.5}', b'{"order_id":"o"}'], pa.binary())
    decoded = JSON.decode(values, schema, ["amount"])
    assert decoded.column.to_pylist() == [{"amount": 1.5}, None]
    assert decoded.errors == {1: 'field "amount" is missing or null'}
    assert JSON.decode(values, schema, []).column.to_pylist() == [{}, {}]
    with pytest.raises(SchemaError, match='no field "price"'):
        JSON.decode(values, schema, ["price"])


def test_python_objects_of_many_kinds_are_written() -> None:
    at = dt.datetime(2025, 1, 31, 12, tzinfo=dt.UTC)
    objects = [
        Point(1),
        Order("o", 1.0),
        (1, 2),
        {2, 1},
        Decimal("1.50"),
        b"\xff",
        at,
        {1: "x"},
        at.date(),
        float("nan"),
    ]
    encoded = JSON.encode([*objects, None], None)
    assert encoded.errors == {}
    assert [text and orjson.loads(text) for text in encoded.values.to_pylist()] == [
        {"x": 1},
        {"order_id": "o", "amount": 1.0},
        [1, 2],
        [1, 2],
        "1.50",
        "/w==",
        "2025-01-31T12:00:00Z",
        {"1": "x"},
        "2025-01-31",
        None,
        None,
    ]


def test_an_object_that_json_has_no_word_for_is_an_error_of_its_row() -> None:
    encoded = JSON.encode([1, object(), {"a": object()}, 2**70, "\ud800"], None)
    assert encoded.values.to_pylist() == [b"1", None, None, None, None]
    assert encoded.errors.keys() == {1, 2, 3, 4}
    assert encoded.errors[1] == "cannot be written as JSON: Type is not JSON serializable: object"


def test_python_objects_are_checked_against_the_schema_before_they_are_written() -> None:
    encoded = JSON.encode([Order("o", 1.0), {"order_id": "p", "amount": "x"}, None], declared_schema(Order))
    assert encoded.values.to_pylist() == [b'{"order_id":"o","amount":1.0}', None, None]
    assert encoded.errors == {1: 'field "amount": expected double, got string "x"'}


def test_chunked_and_text_columns_are_taken_too() -> None:
    values = pa.chunked_array([pa.array(['{"a":1}']), pa.array(['{"a":2}'])])
    assert JSON.decode(values, declared_schema("a bigint")).column.to_pylist() == [{"a": 1}, {"a": 2}]

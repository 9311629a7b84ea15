from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.errors import SchemaError
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema
from records.arrays import SCALARS
from records.round_trips import assert_round_trip

BYTES = {"int": struct.pack(">i", -7), "bigint": struct.pack(">q", 7), "double": struct.pack(">d", 1.5)}
VALUES = {"int": -7, "bigint": 7, "double": 1.5, "string": "é", "binary": b"\xff"}


@pytest.mark.parametrize("declared", VALUES)
def test_one_column_is_written_as_kafkas_serializer_of_its_type_does(declared: str) -> None:
    form, value = format_named("KAFKA"), VALUES[declared]
    expected = BYTES.get(declared, value.encode() if isinstance(value, str) else value)
    for schema, wrapped in ((declared_schema(declared), value), (declared_schema(f"V {declared}"), {"V": value})):
        assert form.encode([wrapped, None], schema).values.to_pylist() == [expected, None]
        decoded = form.decode(pa.array([expected, None], pa.binary()), schema)
        assert not isinstance(decoded.column, list)
        assert decoded.column.to_pylist() == [wrapped, None]


@pytest.mark.parametrize("declared", VALUES)
def test_what_was_written_reads_back(declared: str) -> None:
    schema = declared_schema(declared)
    assert schema is not None

    @given(st.lists(st.none() | SCALARS[declared], max_size=4))
    def check(items: list[Any]) -> None:
        assert_round_trip("kafka", schema, pa.array(items, schema.arrow))

    check()


def test_a_wrong_number_of_bytes_is_an_error_of_its_row() -> None:
    values = pa.array([b"\0\0\0\1", b"\1", b"\0\0\0\2"], pa.binary())
    decoded = format_named("kafka").decode(values, declared_schema("ID int"))
    assert decoded.errors == {1: "expected 4 bytes of int32, got 1"}
    assert not isinstance(decoded.column, list)
    assert decoded.column.to_pylist() == [{"ID": 1}, None, {"ID": 2}]


def test_a_null_field_is_written_as_nothing() -> None:
    assert format_named("kafka").encode([{"ID": None}], declared_schema("ID int")).values.to_pylist() == [None]


@pytest.mark.parametrize("declared", ["A int, B int", "A boolean", "array<int>", "A struct<B: int>", "timestamp"])
def test_what_kafka_has_no_serializer_for_is_refused(declared: str) -> None:
    with pytest.raises(SchemaError, match='format "kafka"'):
        format_named("kafka").decode(pa.array([], pa.binary()), declared_schema(declared))


def test_without_columns_there_is_nothing_to_read() -> None:
    with pytest.raises(SchemaError, match="needs a declared type"):
        format_named("kafka").decode(pa.array([], pa.binary()), None)
    decoded = format_named("kafka").decode(pa.array([b"x"], pa.binary()), declared_schema("struct<>"))
    assert not isinstance(decoded.column, list)
    assert decoded.column.to_pylist() == [None]

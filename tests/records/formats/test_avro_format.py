from __future__ import annotations

import datetime as dt
import io
import struct
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.errors import SchemaError
from potok.records.formats.avro_format import avro_schema
from potok.records.formats.format import Decoded
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from records.arrays import columns
from records.round_trips import assert_round_trip

ORDER = declared_schema(
    "ID bigint, NAME string, PRICE decimal(10,2), DAY date, AT time, MADE timestamp, PAID boolean, "
    "RAW binary, X double, TAGS array<string>, M map<string, int>, ADDRESS struct<CITY: string>"
)
ROW = {
    "ID": -3,
    "NAME": "é",
    "PRICE": Decimal("-12.50"),
    "DAY": dt.date(1969, 12, 31),
    "AT": dt.time(1, 2, 3, 4000),
    "MADE": dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, dt.UTC),
    "PAID": True,
    "RAW": b"\xff",
    "X": 1.5,
    "TAGS": ["a", None],
    "M": {"k": 7, "n": None},
    "ADDRESS": {"CITY": "Riga"},
}


def decode(declared: object, *values: bytes | None) -> Decoded:
    return format_named("avro").decode(pa.array(values, pa.binary()), declared_schema(declared))


def rows(decoded: Decoded) -> list[Any]:
    assert not isinstance(decoded.column, list)
    return decoded.column.to_pylist()


@settings(max_examples=200)
@given(columns())
def test_what_was_written_reads_back(case: tuple[Schema, list[Any], pa.Array]) -> None:
    assert_round_trip("avro", case[0], case[2])


def test_bytes_of_another_writer_are_read() -> None:
    assert ORDER is not None
    stream = io.BytesIO()
    # With the logical types of the published schema, and the objects that stand for these.
    plain = {**ROW, "M": {"k": 7, "n": None}}
    fastavro.schemaless_writer(stream, fastavro.parse_schema(avro_schema(ORDER)), plain)
    decoded = decode(ORDER, stream.getvalue())
    assert decoded.errors == {}
    assert rows(decoded) == [{**ROW, "M": [("k", 7), ("n", None)]}]


def test_another_reader_reads_our_bytes() -> None:
    assert ORDER is not None
    data = format_named("avro").encode([ROW], ORDER).values[0].as_py()
    assert fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(avro_schema(ORDER)), None) == ROW


def test_bytes_written_by_hand() -> None:
    # Each column is its place in the union, then the value: numbers zigzag, text and bytes with their length.
    values = (
        b"\x02\x05" + b"\x02\x04hi" + b"\x00" + b"\x02" + struct.pack("<d", 0.5) + b"\x02\x02" + b"\x02\x04\x04\xe2"
    )
    declared = "A bigint, B string, C int, D double, E date, F decimal(6,1)"
    assert rows(decode(declared, values)) == [
        {"A": -3, "B": "hi", "C": None, "D": 0.5, "E": dt.date(1970, 1, 2), "F": Decimal("125.0")}
    ]
    row = {"A": -3, "B": "hi", "C": None, "D": 0.5, "E": dt.date(1970, 1, 2), "F": Decimal("125.0")}
    assert format_named("avro").encode([row], declared_schema(declared)).values.to_pylist() == [values]


def test_a_list_may_come_in_blocks_with_their_size() -> None:
    whole, blocks = b"\x02\x04\x02\x02\x02\x04\x00", b"\x02\x01\x04\x02\x02\x01\x04\x02\x04\x00"
    assert rows(decode("A array<int>", whole, blocks)) == [{"A": [1, 2]}] * 2


@pytest.mark.parametrize("number", [1, 2, 3, 100_000, 2**31 - 1])
def test_a_header_of_confluents_serializers_is_stepped_over(number: int) -> None:
    assert ORDER is not None
    header = b"\0" + struct.pack(">i", number)
    data = format_named("avro").encode([ROW, dict.fromkeys(ROW)], ORDER).values.to_pylist()
    decoded = decode(ORDER, *(header + value for value in data))
    assert decoded.errors == {}
    assert rows(decoded) == [{**ROW, "M": [("k", 7), ("n", None)]}, dict.fromkeys(ROW)]


@pytest.mark.parametrize(
    "value", [b"", b"\x02", b"\x02\x06ab", b"\x02\x02a\xff", b"\x05", b"\x01\x02a", b"\x02\x02\xff", b"\0x"]
)
def test_bytes_that_are_not_such_a_record_are_an_error_of_their_row_alone(value: bytes) -> None:
    decoded = decode("A string", b"\x02\x02a", value, b"\x00", b"\x02\x02b")
    assert list(decoded.errors) == [1]
    assert decoded.errors[1].startswith("not valid Avro of the declared columns")
    assert rows(decoded) == [{"A": "a"}, None, {"A": None}, {"A": "b"}]


@settings(max_examples=300)
@given(st.binary(max_size=24))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    for declared in (ORDER, "A map<int, decimal(4,2)>, B array<array<date>>", "timestamp", "struct<>"):
        decoded = decode(declared, data)
        assert (rows(decoded)[0] is None) == (0 in decoded.errors)


def test_numbers_out_of_range_are_errors_of_their_field() -> None:
    assert decode("A smallint", b"\x02\x80\x80\x08").errors == {0: 'field "A": 65536 is out of the range of smallint'}
    assert "not a time" in decode("A time", b"\x02\x01").errors[0]
    assert "more digits" in decode("A decimal(2,1)", b"\x02\x04\x7f\xff").errors[0]


def test_names_that_avro_does_not_allow_have_underscores() -> None:
    schema = declared_schema("`a.b` int, `a b` int, `1` int, `ü` struct<`x-y`: int>")
    assert schema is not None
    assert [field["name"] for field in avro_schema(schema)["fields"]] == ["a_b", "a_b_1", "_1", "_"]
    row = {"a.b": 1, "a b": 2, "1": 3, "ü": {"x-y": 4}}
    assert rows(decode(schema, format_named("avro").encode([row], schema).values[0].as_py())) == [row]


def test_unselected_columns_are_not_checked() -> None:
    data = format_named("avro").encode([{"A": 1, "B": 70000}], declared_schema("A int, B int")).values
    decoded = format_named("avro").decode(data, declared_schema("A int, B smallint"), ["A"])
    assert (rows(decoded), decoded.errors) == ([{"A": 1}], {})


def test_without_columns_it_is_refused() -> None:
    with pytest.raises(SchemaError, match="needs declared columns"):
        decode(None)

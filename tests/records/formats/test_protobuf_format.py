from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import Int32Value, StringValue
from hypothesis import given, settings
from hypothesis import strategies as st

from potok.errors import SchemaError
from potok.records.formats.format import Decoded
from potok.records.formats.registry import format_named
from potok.records.rows import column_of
from potok.records.schemas.declared_schema import declared_schema
from records.arrays import SCALARS, objects
from records.round_trips import assert_round_trip

DECLARED = declared_schema(
    ", ".join(f"C{index} {name}" for index, name in enumerate(SCALARS))
    + ", S struct<X: bigint, Y: struct<Z: timestamp>>, E struct<>"
)
ITEMS = declared_schema(
    "L array<struct<X: time>>, N array<double>, M map<string, date>, O map<bigint, struct<X: decimal(10,2)>>"
)


def decode(declared: object, *values: bytes | None) -> Decoded:
    return format_named("protobuf").decode(pa.array(values, pa.binary()), declared_schema(declared))


def rows(decoded: Decoded) -> list[Any]:
    assert not isinstance(decoded.column, list)
    return decoded.column.to_pylist()


def field(number: int, data: bytes) -> bytes:
    """A field with its length before it, as the wire format has it."""
    return bytes([number << 3 | 2, len(data)]) + data


@settings(max_examples=150)
@given(st.data())
def test_what_was_written_reads_back(data: st.DataObject) -> None:
    assert DECLARED is not None
    given_rows = data.draw(st.lists(st.none() | objects(DECLARED), max_size=3))
    assert_round_trip("protobuf", DECLARED, column_of(given_rows, DECLARED).column)


# Protobuf cannot tell a null list or map from an empty one, and has no null inside.
FULL = st.fixed_dictionaries(
    {
        "L": st.lists(st.fixed_dictionaries({"X": st.none() | SCALARS["time"]}), max_size=3),
        "N": st.lists(st.floats(), max_size=3),
        "M": st.dictionaries(SCALARS["string"], SCALARS["date"], max_size=3),
        "O": st.dictionaries(
            SCALARS["bigint"], st.fixed_dictionaries({"X": st.none() | SCALARS["decimal(10,2)"]}), max_size=3
        ),
    }
)


@settings(max_examples=100)
@given(st.lists(FULL, max_size=3))
def test_lists_and_maps_read_back(given_rows: list[dict[str, Any]]) -> None:
    encoded = format_named("protobuf").encode(given_rows, ITEMS)
    assert encoded.errors == {}
    decoded = decode(ITEMS, *encoded.values.to_pylist())
    assert decoded.errors == {}
    # A map has no order of its own.
    expected = [(row["L"], row["N"], *(sorted(row[name].items(), key=repr) for name in "MO")) for row in given_rows]
    found = [(row["L"], row["N"], *(sorted(row[name], key=repr) for name in "MO")) for row in rows(decoded)]
    assert repr(found) == repr(expected)


def test_bytes_written_by_hand() -> None:
    at = Timestamp(seconds=1_700_000_000, nanos=123_000_000).SerializeToString()
    value = (
        b"\x08\x96\x01"  # number 1, a varint
        + field(2, "é".encode())
        + b"\x19" + struct.pack("<d", 0.5)
        + field(4, at)
        + field(5, b"\x08\xe7\x0f\x10\x0b\x18\x0e")  # year, month, day
        + field(6, field(1, b"\x04\xe2") + b"\x10\x06\x18\x01")  # unscaled bytes, precision, scale
        + field(7, b"\x01\x02")  # packed
        + field(8, field(1, b"k") + b"\x10\x07")
        + field(9, field(1, b"Riga"))
        + field(15, b"unknown")
    )  # fmt: skip
    declared = (
        "A int, B string, C double, D timestamp, E date, F decimal(6,1), G array<int>, H map<string, int>, "
        "I struct<CITY: string>, J time"
    )
    expected = {
        "A": 150,
        "B": "é",
        "C": 0.5,
        "D": dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, dt.UTC),
        "E": dt.date(2023, 11, 14),
        "F": Decimal("125.0"),
        "G": [1, 2],
        "H": [("k", 7)],
        "I": {"CITY": "Riga"},
        "J": None,
    }
    assert rows(decode(declared, value)) == [expected]
    written = (
        format_named("protobuf").encode([{**expected, "H": {"k": 7}}], declared_schema(declared)).values[0].as_py()
    )
    assert written == value.removesuffix(field(15, b"unknown"))


def test_nothing_is_null_and_zero_is_zero() -> None:
    schema = declared_schema("A int, B string, L array<int>, M map<string, int>")
    encoded = format_named("protobuf").encode([{"A": 0, "B": ""}, dict.fromkeys("ABLM")], schema)
    assert encoded.values.to_pylist() == [b"\x08\x00\x12\x00", b""]
    assert rows(decode(schema, *encoded.values.to_pylist())) == [
        {"A": 0, "B": "", "L": [], "M": []},
        {"A": None, "B": None, "L": [], "M": []},
    ]


NESTED = "A int, B string, C boolean, S struct<X: bigint, Y: timestamp>, L array<int>, M map<string, int>"


def test_without_a_wrapper_a_missing_scalar_has_the_default_of_its_type() -> None:
    schema, format_ = declared_schema(NESTED), format_named("protobuf;nulls=default")
    given_rows = [{"A": 0, "B": "", "C": False, "S": {"X": 0}}, dict.fromkeys("ABCSLM"), {"A": 5, "S": {}}]
    encoded = format_.encode(given_rows, schema)
    assert encoded.values.to_pylist() == [b"\x22\x00", b"", b"\x08\x05\x22\x00"]
    nothing = {"B": "", "C": False, "L": [], "M": []}
    assert rows(format_.decode(encoded.values, schema)) == [
        {"A": 0, **nothing, "S": {"X": 0, "Y": None}},
        {"A": 0, **nothing, "S": None},
        {"A": 5, **nothing, "S": {"X": 0, "Y": None}},
    ]


def test_wrappers_distinguish_null_from_zero_like_those_of_google() -> None:
    schema, format_ = declared_schema("A int, B string, S struct<X: bigint>"), format_named("protobuf;nulls=wrapper")
    encoded = format_.encode([{"A": 7, "B": "", "S": {"X": 0}}, dict.fromkeys("ABS")], schema)
    wrapped = field(1, Int32Value(value=7).SerializeToString()) + field(2, StringValue().SerializeToString())
    assert encoded.values.to_pylist() == [wrapped + field(3, field(1, b"")), b""]
    assert rows(format_.decode(encoded.values, schema)) == [
        {"A": 7, "B": "", "S": {"X": 0}},
        {"A": None, "B": None, "S": None},
    ]


def test_another_text_for_null_is_refused() -> None:
    with pytest.raises(SchemaError, match="cannot have nulls=never"):
        format_named("protobuf;nulls=never")


@pytest.mark.parametrize("path", [b"\x00", b"\x02\x02", b"\x04\x02\x00"])
def test_a_header_of_confluents_serializers_is_stepped_over(path: bytes) -> None:
    header = b"\0" + struct.pack(">i", 300) + path
    assert rows(decode("A int", header + b"\x08\x07", header)) == [{"A": 7}, {"A": None}]


@pytest.mark.parametrize(
    "value", [b"\xff", b"\x08", b"\x12\x05a", b"\x12\x01\xff", b"\0", b"\0\0\0\0\1", b"\0\0\0\0\1\x08\0"]
)
def test_bytes_that_are_not_such_a_message_are_an_error_of_their_row_alone(value: bytes) -> None:
    decoded = decode("A int, B string", b"\x08\x01", value, b"\x08\x02")
    assert list(decoded.errors) == [1]
    assert [row and row["A"] for row in rows(decoded)] == [1, None, 2]


@settings(max_examples=300)
@given(st.binary(max_size=24))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    for declared in (DECLARED, ITEMS, "A smallint, B date, C decimal(4,2), D time", "timestamp"):
        decoded = decode(declared, data)
        assert isinstance(decoded.errors.get(0, ""), str)
        assert 0 not in decoded.errors or rows(decoded)[0] is None


def test_what_does_not_fit_is_an_error_of_its_row() -> None:
    assert "out of the range of smallint" in decode("A smallint", b"\x08\x80\x80\x04").errors[0]
    assert "is not a date" in decode("A date", field(1, b"\x08\x01")).errors[0]
    assert "3 digits behind its point" in decode("A decimal(4,2)", field(1, field(1, b"\x01") + b"\x18\x03")).errors[0]
    encoded = format_named("protobuf").encode([{"L": [1, None]}, {"L": [1]}], declared_schema("L array<int>"))
    assert encoded.errors == {0: 'field "L": Protobuf has no null in a list'}
    assert encoded.values.to_pylist() == [None, b"\x0a\x01\x01"]


def test_a_list_right_inside_a_list_is_refused() -> None:
    for declared in ("A array<array<int>>", "A map<string, array<int>>", "array<array<int>>"):
        with pytest.raises(SchemaError, match="cannot be written as Protobuf") as raised:
            decode(declared)
        assert "STRUCT" in raised.value.hint
    with pytest.raises(SchemaError, match="needs declared columns"):
        decode(None)

from __future__ import annotations

import csv
import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.errors import SchemaError
from potok.records.formats.delimited import DelimitedFormat
from potok.records.formats.format import Decoded
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from records.arrays import SCALARS, objects

DELIMITED = DelimitedFormat()
ORDERS = declared_schema(
    "order_id string, amount double, n bigint, paid boolean, day date, at timestamp, price decimal(10,2)"
)


def decode(schema: Schema | None, *lines: bytes | None, columns: list[str] | None = None) -> Decoded:
    return DELIMITED.decode(pa.array(lines, pa.binary()), schema, columns)


def test_fields_are_read_by_position() -> None:
    decoded = decode(ORDERS, b"o-1,1.5,7,true,2025-01-31,2025-01-31T10:00:00Z,9.99", b",,,,,,", None)
    assert decoded.errors == {}
    first, empty, missing = decoded.column.to_pylist()
    assert [str(item) for item in first.values()] == [
        *("o-1", "1.5", "7", "True", "2025-01-31", "2025-01-31 10:00:00+00:00", "9.99"),
    ]
    assert set(empty.values()) == {None}
    assert missing is None


def test_quotes_protect_commas_quotes_and_emptiness() -> None:
    decoded = decode(declared_schema("a string, b string"), b'"x,y","say ""hi"""', b'"",', b'"a"b,c', b'a"b,c', b'"a,b')
    assert decoded.column.to_pylist() == [{"a": "x,y", "b": 'say "hi"'}, {"a": "", "b": None}, None, None, None]
    assert decoded.errors[2] == "unexpected quote at character 4"


def test_a_bad_line_says_what_is_wrong_with_it() -> None:
    schema = declared_schema("a string not null, n bigint")
    decoded = decode(schema, b"x", b"x,y", b",1", b"\xff,1", b"x,1")
    assert decoded.errors == {
        0: "expected 2 fields, got 1",
        1: 'field "n": expected bigint, got string "y"',
        2: 'field "a" is missing or null',
        3: "not valid UTF-8: invalid start byte at byte 0",
    }
    assert decoded.column.to_pylist()[4] == {"a": "x", "n": 1}


def test_only_the_asked_columns_are_checked() -> None:
    decoded = decode(declared_schema("a string, n bigint, b double"), b"x,bad,1.5", columns=["b", "a"])
    assert decoded.column.to_pylist() == [{"a": "x", "b": 1.5}]


def test_a_scalar_is_one_field() -> None:
    assert decode(declared_schema(int), b"5", b"x").column.to_pylist() == [5, None]


def test_delimited_needs_a_schema_without_nesting() -> None:
    with pytest.raises(SchemaError, match="need a declared type"):
        decode(None, b"a")
    with pytest.raises(SchemaError, match="cannot hold"):
        decode(declared_schema("a array<string>"), b"a")


FINITE = {name: made for name, made in SCALARS.items() if name not in ("double", "float")}
FIELDS = declared_schema(", ".join(f"f{index} {name}" for index, name in enumerate(FINITE)))
assert FIELDS is not None


@given(st.lists(st.none() | objects(FIELDS), max_size=4))
def test_what_was_written_reads_back_and_is_csv(rows: list[Any]) -> None:
    encoded = DELIMITED.encode(rows, FIELDS)
    assert encoded.errors == {}
    assert DELIMITED.decode(encoded.values, FIELDS).column.to_pylist() == rows
    for row, line in zip(rows, encoded.values.to_pylist(), strict=True):
        if row and row["f0"] and "\x00" not in row["f0"]:
            (cells,) = csv.reader(io.StringIO(line.decode(), newline=""), strict=True)
            assert cells[0] == row["f0"]

"""Keys of windowed tables, as Kafka Streams writes them."""

from __future__ import annotations

import datetime as dt
import struct

import pyarrow as pa
import pytest

from potok.errors import SchemaError
from potok.records.formats.registry import format_named
from potok.records.formats.windowed import inner_option
from potok.records.schemas.declared_schema import declared_schema

KEY = pa.struct([("key", pa.string()), ("start", pa.int64()), ("end", pa.int64())])
ROWS = [{"key": "ann", "start": 10_000, "end": 20_000}, None, {"key": "", "start": -5, "end": 5}]


def test_a_window_of_one_size_is_written_as_key_and_start() -> None:
    encoded = format_named("windowed").encode(pa.array(ROWS, KEY), None)
    assert encoded.values.to_pylist() == [b"ann" + struct.pack(">q", 10_000), None, struct.pack(">q", -5)]
    assert format_named("windowed").encode(ROWS, None).values == encoded.values


def test_a_session_is_written_as_key_end_and_start() -> None:
    encoded = format_named("session").encode(ROWS[:1], None)
    assert encoded.values.to_pylist() == [b"ann" + struct.pack(">qq", 20_000, 10_000)]


def test_a_session_comes_back_whole_and_a_window_without_its_end() -> None:
    sessions = format_named("session").encode(ROWS, None).values
    assert format_named("session").decode(sessions, None).column == ROWS
    assert format_named("session").decode(sessions, declared_schema(KEY)).column.to_pylist() == ROWS
    windows = format_named("windowed").encode(ROWS, None).values
    assert format_named("windowed").decode(windows, None).column == [row and {**row, "end": None} for row in ROWS]


def test_numbers_are_keys_as_json() -> None:
    encoded = format_named("windowed").encode([{"key": 7, "start": 0, "end": 1}], None)
    assert encoded.values.to_pylist() == [b"7" + bytes(8)]


def test_what_is_not_a_windowed_key_is_an_error_of_its_row() -> None:
    assert list(format_named("windowed").encode(["ann", ROWS[0]], None).errors) == [0]
    assert list(format_named("windowed").decode(pa.array([b"short", bytes(8)]), None).errors) == [0]
    with pytest.raises(SchemaError, match="keys of windowed tables"):
        format_named("windowed").encode(pa.array(["ann"]), None)


def test_the_key_inside_may_have_a_format_of_its_own() -> None:
    schema = declared_schema("key struct<A: int, B: date>, start bigint, end bigint")
    assert schema is not None
    keys = [{"key": {"A": 1, "B": dt.date(1970, 1, 3)}, "start": 5, "end": None}, None]
    for name, head in (("sql_json", b'{"A":1,"B":2}'), ("sql_delimited", b"1,2"), ("avro", b"\x02\x02\x02\x04")):
        form = format_named(f"windowed;inner={name}")
        encoded = form.encode(pa.array(keys, schema.arrow), schema)
        assert (encoded.values.to_pylist(), encoded.errors) == ([head + struct.pack(">q", 5), None], {})
        decoded = form.decode(encoded.values, schema)
        assert not isinstance(decoded.column, list)
        assert decoded.column.to_pylist() == keys
    sessions = pa.array([{"key": 7, "start": 1, "end": 2}], pa.struct([("key", pa.int32()), *list(KEY)[1:]]))
    number = format_named("session;inner=kafka").encode(sessions, None)
    assert number.values.to_pylist() == [struct.pack(">iqq", 7, 2, 1)]


def test_a_key_that_its_format_cannot_read_is_an_error_of_its_row() -> None:
    schema = declared_schema("key int, start bigint, end bigint")
    values = pa.array([struct.pack(">iq", 1, 5), struct.pack(">hq", 1, 5)], pa.binary())
    decoded = format_named("windowed;inner=kafka").decode(values, schema)
    assert decoded.errors == {1: "expected 4 bytes of int32, got 2"}
    assert not isinstance(decoded.column, list)
    assert decoded.column.to_pylist() == [{"key": 1, "start": 5, "end": None}, None]


@pytest.mark.parametrize("delimiter", ["|", "&", ";", "%", "=", "TAB"])
def test_the_format_inside_may_have_any_delimiter(delimiter: str) -> None:
    form = format_named(f"windowed;size_ms=10;inner={inner_option(f'sql_delimited;delimiter={delimiter}')}")
    inner, sign = pa.struct([("a", pa.string()), ("b", pa.string())]), "\t" if delimiter == "TAB" else delimiter
    type_ = pa.struct([("key", inner), ("start", pa.int64()), ("end", pa.int64())])
    key = {"key": {"a": "x", "b": "y"}, "start": 20, "end": 30}
    encoded = form.encode(pa.array([key], type_), declared_schema(type_))
    assert encoded.values[0].as_py()[:3] == f"x{sign}y".encode()
    assert form.decode(encoded.values, declared_schema(type_)).column.to_pylist() == [key]

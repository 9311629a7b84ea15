"""The ids of schemas in front of values and in headers."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from potok.log.broker import HEADERS
from potok.records.schema_registry.wire import (
    VALUE_HEADER,
    by_path,
    framed,
    frames_of,
    path_bytes,
    prefixed,
    with_ids_of_headers,
)

GUID = uuid.UUID("0190e4f4-5b30-7a2c-9c3e-2f6d0c1f7a11")


def binary(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


def test_values_are_grouped_by_the_ids_before_them() -> None:
    values = binary(b"skipped", framed(7) + b"a", None, framed(9), framed(7) + b"bc").slice(1)
    frames = frames_of(values)
    assert {number: rows.tolist() for number, rows in frames.rows_of.items()} == {7: [0, 3], 9: [2]}
    assert frames.bodies.to_pylist() == [b"a", None, b"", b"bc"]
    assert frames.errors == {}


def test_the_largest_id_is_read_and_written() -> None:
    number = (1 << 32) - 1
    assert list(frames_of(binary(framed(number))).rows_of) == [number]


def test_a_guid_is_read_as_confluents_serializers_write_it() -> None:
    written = SchemaId("AVRO", None, str(GUID)).guid_to_bytes() + b"body"
    frames = frames_of(binary(written, framed(1) + b"x"))
    assert {key: rows.tolist() for key, rows in frames.rows_of.items()} == {1: [1], str(GUID): [0]}
    assert frames.bodies.to_pylist() == [b"body", b"x"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "does not begin with the id"),
        (b"{}", "does not begin with the id"),
        (b"\0", "cut off"),
        (b"\0\0\0\1", "cut off"),
        (b"\1" + GUID.bytes[:-1], "cut off"),
        (b"\2\0\0\0\1", "does not begin with the id"),
    ],
)
def test_a_value_without_an_id_is_an_error_of_its_row(value: bytes, reason: str) -> None:
    frames = frames_of(binary(framed(1) + b"x", value))
    assert list(frames.rows_of) == [1] and list(frames.errors) == [1]
    assert reason in frames.errors[1]


@given(st.lists(st.none() | st.binary(max_size=24), max_size=8))
def test_any_bytes_are_a_value_of_a_schema_or_an_error(values: list[bytes | None]) -> None:
    frames = frames_of(binary(*values))
    grouped = sorted(row for rows in frames.rows_of.values() for row in rows.tolist())
    assert sorted([*grouped, *frames.errors]) == [row for row, value in enumerate(values) if value is not None]
    assert len(frames.bodies) == len(values)
    for number, rows in frames.rows_of.items():
        for row in rows.tolist():
            body = frames.bodies[row].as_py()
            prefix = framed(number) if isinstance(number, int) else b"\1" + uuid.UUID(number).bytes
            assert prefix + body == values[row]


def test_ids_of_headers_are_put_before_their_values() -> None:
    headers = [
        [(VALUE_HEADER, framed(5)), ("other", b"x")],
        None,
        [("other", None)],
        [(VALUE_HEADER, b"old"), (VALUE_HEADER, b"new")],
        [(VALUE_HEADER, framed(5))],
    ]
    column = pa.array(
        [None if row is None else [{"name": name, "value": value} for name, value in row] for row in headers], HEADERS
    )
    values = binary(b"a", b"b", b"c", b"d", None)
    found = with_ids_of_headers(values, column, VALUE_HEADER)
    assert found.to_pylist() == [framed(5) + b"a", b"b", b"c", b"newd", None]
    assert with_ids_of_headers(values.slice(1, 2), column.slice(1, 2), VALUE_HEADER).to_pylist() == [b"b", b"c"]
    assert prefixed(b"p", values.slice(3)).to_pylist() == [b"pd", None]


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=6))
def test_paths_are_written_as_confluents_serializers_write_them(path: list[int]) -> None:
    written = SchemaId("PROTOBUF", 1, None, path).id_to_bytes()
    assert framed(1, path_bytes(path)) == written
    ((_, found, body),) = by_path([written[5:] + b"body"])
    assert (found, body) == (tuple(path), b"body")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x02",  # one index, which is missing
        b"\x04\x02",  # two indexes, of which one is missing
        b"\x80",
        b"\xff" * 12,
        b"\x01",  # a negative count
        b"\x02\x01",  # a negative index
        b"\xfe\xff\xff\xff\x0f" + b"\0" * 100,  # two thousand million indexes
        b"\x80\x80\x80\x80\x80\x80\x01",  # longer than 32 bits
    ],
)
def test_a_path_that_is_not_complete_is_none(body: bytes) -> None:
    assert [path for _, path, _ in by_path([body])] == [None]

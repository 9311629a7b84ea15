"""Schemas and values of others: whatever they are, an error of the record, and nothing is raised or runs forever."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from potok.records.formats.registered.declare import registered_format
from potok.records.schema_registry.client import AVRO, JSON, PROTOBUF, Registered, RegistryClient
from potok.records.schema_registry.connection import Connection
from potok.records.schema_registry.errors import UnknownSchema
from potok.records.schema_registry.wire import framed
from potok.records.schemas.ddl import parse_ddl

AVRO_TEXT = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "a", "type": ["null", "int", "string"]},
            {"name": "b", "type": {"type": "map", "values": {"type": "array", "items": "bytes"}}},
            {"name": "c", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "d", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X"]}},
        ],
    }
)
PROTO_TEXT = """
syntax = "proto3";
import "google/protobuf/timestamp.proto"; import "google/type/date.proto"; import "confluent/type/decimal.proto";
message R {
  oneof a { int32 int = 1; string string = 2; }
  map<string, Many> b = 3; message Many { repeated bytes items = 1; R more = 2; }
  confluent.type.Decimal c = 4; google.protobuf.Timestamp d = 5; enum E { X = 0; } E e = 6; google.type.Date f = 7;
}"""
COLUMNS = parse_ddl(
    "a struct<int: int, string: string>, c decimal(9,2), d timestamp, e string, f date, g array<struct<x: bigint>>"
)
FORMATS = {AVRO: "avro_sr", PROTOBUF: "protobuf_sr", JSON: "json_sr"}


def form(kind: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A format whose client knows schema 1."""
    client = RegistryClient(Connection(("http://127.0.0.1:9",)))
    client._cache["id", 1] = Registered(1, kind, text)
    monkeypatch.setattr(f"{registered_format.__module__}.RegisteredFormat.client", client)
    return registered_format(FORMATS[kind])


@pytest.mark.parametrize(("kind", "text"), [(AVRO, AVRO_TEXT), (PROTOBUF, PROTO_TEXT), (JSON, "{}")])
def test_no_bytes_make_a_format_raise(kind: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    format_ = form(kind, text, monkeypatch)
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    bodies = st.binary(max_size=40) | st.sampled_from([huge, b"\0" + huge, b"\4" + huge * 3, b"\0\x2a\x80\x80"])

    @settings(max_examples=150, suppress_health_check=list(HealthCheck))
    @given(st.lists(bodies, min_size=1, max_size=5))
    def check(values: list[bytes]) -> None:
        column = pa.array([framed(1) + value for value in values], pa.binary())
        for schema in (None, COLUMNS):
            found = format_.decode(column, schema)
            assert len(found.column) == len(values)
            objects = found.column if schema is None else found.column.to_pylist()
            assert set(found.errors) <= set(range(len(values)))
            assert all(objects[row] is None for row in found.errors)

    check()


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (AVRO, "[", "is not valid Avro"),
        (AVRO, '{"type": "record"}', "is not valid Avro"),
        (AVRO, '{"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "r"]}]}', "contains itself"),
        (AVRO, '{"type": "array", "items": "null"}', "take no bytes"),
        (AVRO, "[" * 300 + '"int"' + "]" * 300, "nested more than"),
        (AVRO, "{" + '"type": {' * 3000 + "}" * 3001, "Avro"),
        (AVRO, '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "gone"}]}', "no definition of"),
        (PROTOBUF, "message R { string a = 1 }", "is not valid Protobuf"),
        (PROTOBUF, "message R { Gone a = 1; }", "is not valid Protobuf"),
        (PROTOBUF, 'syntax = "proto3"; import "gone.proto"; message R {}', 'imports "gone.proto"'),
        (PROTOBUF, "message R { " * 4000, "is not valid Protobuf"),
        (PROTOBUF, "message R { string a = 99999999999; }", "is not valid Protobuf"),
        (PROTOBUF, 'syntax = "proto3"; enum E { A = 0; }', "has no message"),
        (PROTOBUF, "AAAA", "is not valid Protobuf"),
        (PROTOBUF, "\x00\u2028", "is not valid Protobuf"),
        (JSON, "{", "is not a JSON Schema"),
    ],
)
def test_a_schema_that_cannot_be_read_is_an_error_of_its_records(
    kind: str, text: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    format_ = form(kind, text, monkeypatch)
    for schema in (None, COLUMNS):
        found = format_.decode(pa.array([framed(1) + b"\0", None], pa.binary()), schema)
        assert list(found.errors) == [0] and "schema 1" in found.errors[0]
        assert reason in found.errors[0]


def test_messages_that_contain_themselves_are_read_up_to_the_depth_of_the_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    format_ = form(PROTOBUF, 'syntax = "proto3"; message R { int32 a = 1; R next = 2; }', monkeypatch)
    schema = parse_ddl("a int, next struct<a: int>")
    body = b"\0\x08\x01\x12\x04\x08\x02\x12\x00"
    found = format_.decode(pa.array([framed(1) + body], pa.binary()), schema)
    assert found.column.to_pylist() == [{"a": 1, "next": {"a": 2}}]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_schema_of_another_kind_is_an_error_of_its_records(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    format_ = form(kind, "{}", monkeypatch)
    format_.client._cache["id", 1] = Registered(1, "OTHER", "{}")
    found = format_.decode(pa.array([framed(1) + b"\0"], pa.binary()), COLUMNS)
    assert "is one of OTHER, not" in found.errors[0]


DEEP = 20


def _avro_doubling() -> str:
    last: Any = "int"
    for depth in range(DEEP):
        inner = {"type": "record", "name": f"R{depth}", "fields": [{"name": "a", "type": last}]}
        if depth:
            inner["fields"].append({"name": "b", "type": f"R{depth - 1}"})
        last = inner
    return json.dumps(last)


def _proto_doubling() -> str:
    names = [f"message R{n} {{ R{n + 1} a = 1; R{n + 1} b = 2; }}" for n in range(DEEP)]
    return 'syntax = "proto3";' + "".join(names) + f"message R{DEEP} {{ int32 a = 1; }}"


def _json_doubling() -> str:
    found: dict[str, Any] = {f"r{DEEP}": {"type": "integer"}}
    for n in range(DEEP):
        inner = {"$ref": f"#/$defs/r{n + 1}"}
        found[f"r{n}"] = {"type": "object", "properties": {"a": inner, "b": inner}}
    return json.dumps({"$ref": "#/$defs/r0", "$defs": found})


@pytest.mark.parametrize(
    ("kind", "text"),
    [(AVRO, _avro_doubling()), (PROTOBUF, _proto_doubling()), (JSON, _json_doubling())],
    ids=[AVRO, PROTOBUF, JSON],
)
def test_a_few_types_that_stand_for_any_number_of_columns_are_refused(
    kind: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    format_ = form(kind, text, monkeypatch)
    with pytest.raises(UnknownSchema, match="more than 10000 fields"):
        format_.infer(format_.client.schema(1), sql=True)
    # Values are read nevertheless, as deep as they are; one of Avro would have a million fields.
    values = {AVRO: b"", PROTOBUF: b"\0", JSON: b"{}"}
    found = format_.decode(pa.array([framed(1) + values[kind]], pa.binary()), None)
    assert found.column == [None if kind == AVRO else {}]
    assert list(found.errors) == ([0] if kind == AVRO else [])

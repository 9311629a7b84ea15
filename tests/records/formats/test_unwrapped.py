from __future__ import annotations

import pyarrow as pa
import pytest

from potok.errors import SchemaError
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema


def test_the_only_field_lies_bare() -> None:
    form, schema = format_named("sql_json;wrap=false"), declared_schema("X array<int>")
    assert form.encode([{"X": [1]}, {"X": None}, None], schema).values.to_pylist() == [b"[1]", None, None]
    decoded = form.decode(pa.array([b"[1]", b"null", None, b"x", b"[2]"], pa.binary()), schema)
    assert list(decoded.errors) == [3]
    assert not isinstance(decoded.column, list)
    assert decoded.column.to_pylist() == [{"X": [1]}, {"X": None}, None, None, {"X": [2]}]


def test_an_unused_field_is_not_read() -> None:
    decoded = format_named("avro;wrap=false").decode(pa.array([b"bad", None]), declared_schema("X int"), [])
    assert decoded.errors == {}
    assert not isinstance(decoded.column, list)
    assert decoded.column.to_pylist() == [{}, None]


def test_several_fields_need_names() -> None:
    with pytest.raises(SchemaError, match="holds one field without a name"):
        format_named("sql_json;wrap=false").decode(pa.array([], pa.binary()), declared_schema("A int, B int"))


def test_a_field_that_does_not_fit_is_an_error_of_its_row() -> None:
    encoded = format_named("protobuf;wrap=false").encode([{"X": "a"}, {"X": 1}], declared_schema("X int"))
    assert encoded.values.to_pylist() == [None, b"\x08\x01"]
    assert list(encoded.errors) == [0]

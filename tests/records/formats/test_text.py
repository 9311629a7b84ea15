from __future__ import annotations

import pyarrow as pa
import pytest

from potok.errors import SchemaError
from potok.records.formats.text import TextFormat
from potok.records.schemas.declared_schema import declared_schema

TEXT = TextFormat()


def test_text_is_utf8() -> None:
    values = pa.array(["é".encode(), None, b"\xff", b""], pa.binary())
    for schema in (None, declared_schema(str)):
        decoded = TEXT.decode(values, schema)
        assert (decoded.column if schema is None else decoded.column.to_pylist()) == ["é", None, None, ""]
        assert decoded.errors == {2: "not valid UTF-8: invalid start byte at byte 0"}


def test_a_scalar_is_written_as_text_and_read_back() -> None:
    for declared, items in ((int, [1, -5, None]), (float, [1.5, 2.0, None]), (bool, [True, False, None])):
        schema = declared_schema(declared)
        encoded = TEXT.encode(items, schema)
        assert encoded.errors == {}
        assert TEXT.decode(encoded.values, schema).column.to_pylist() == items


def test_text_that_is_not_a_number_is_an_error() -> None:
    decoded = TEXT.decode(pa.array([b"1", b"1.5", b"x"], pa.binary()), declared_schema(int))
    assert decoded.column.to_pylist() == [1, None, None]
    assert decoded.errors[2] == 'the value: expected bigint, got string "x"'


def test_objects_without_a_schema_are_text_or_scalars() -> None:
    encoded = TEXT.encode(["a", 1, True, 1.5, None, {"a": 1}, "\ud800"], None)
    assert encoded.values.to_pylist() == [b"a", b"1", b"true", b"1.5", None, None, None]
    assert encoded.errors[5] == "expected text, got an object"
    assert 6 in encoded.errors


def test_a_struct_is_not_text() -> None:
    with pytest.raises(SchemaError, match="cannot hold"):
        TEXT.decode(pa.array([], pa.binary()), declared_schema("a int"))
    with pytest.raises(SchemaError, match="cannot hold"):
        TEXT.encode(pa.array([["a"]]), declared_schema("array<string>"))

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.errors import SchemaError
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema

CASES = [
    ("int32", ">i", st.integers(-(2**31), 2**31 - 1)),
    ("int64", ">q", st.integers(-(2**63), 2**63 - 1)),
    ("float32", ">f", st.floats(width=32, allow_nan=False)),
    ("float64", ">d", st.floats(allow_nan=False)),
]


@pytest.mark.parametrize(("name", "code", "numbers"), CASES)
def test_numbers_are_written_as_kafka_writes_them(name: str, code: str, numbers: st.SearchStrategy[float]) -> None:
    form = format_named(name)

    @given(st.lists(st.none() | numbers, max_size=5))
    def check(items: list[float | None]) -> None:
        encoded = form.encode(items, None)
        assert encoded.errors == {}
        assert encoded.values.to_pylist() == [None if item is None else struct.pack(code, item) for item in items]
        sliced = pa.concat_arrays([pa.array([b"x", None], pa.binary()), encoded.values]).slice(2)
        assert form.decode(sliced, None).column == items

    check()


def test_a_wrong_number_of_bytes_is_an_error() -> None:
    values = pa.array([b"\0\0\0\1", b"\1", None, b"", b"\0\0\0\2"], pa.binary())
    decoded = format_named("int32").decode(values, declared_schema(int))
    assert decoded.column.to_pylist() == [1, None, None, None, 2]
    assert decoded.column.type == pa.int64()
    assert decoded.errors == {1: "expected 4 bytes of int32, got 1", 3: "expected 4 bytes of int32, got 0"}


def test_a_number_that_does_not_fit_is_an_error_of_its_row() -> None:
    encoded = format_named("int32").encode(pa.array([1, 2**40, None]), declared_schema(int))
    assert encoded.values.to_pylist() == [b"\0\0\0\1", None, None]
    assert encoded.errors == {1: "the value: 1099511627776 is out of the range of int"}
    assert format_named("float64").encode(["x"], None).errors == {0: 'the value: expected double, got string "x"'}


def test_a_narrower_type_or_one_of_another_kind_cannot_be_declared() -> None:
    for name, declared in (("int64", "int"), ("int32", "double"), ("float64", "float"), ("int32", "string")):
        with pytest.raises(SchemaError, match="cannot hold"):
            format_named(name).decode(pa.array([], pa.binary()), declared_schema(declared))

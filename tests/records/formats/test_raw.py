from __future__ import annotations

import pyarrow as pa
import pytest

from potok.errors import SchemaError
from potok.records.formats.raw import RawFormat
from potok.records.schemas.declared_schema import declared_schema

RAW = RawFormat()


def test_bytes_pass_through_unchanged() -> None:
    values = pa.array([b"\xff", None, b""], pa.binary())
    assert RAW.decode(values, None).column == [b"\xff", None, b""]
    assert RAW.decode(values, declared_schema(bytes)).column.equals(values)
    assert RAW.encode(values, declared_schema(bytes)).values.equals(values)
    assert RAW.encode([b"\xff", None, b""], None).values.equals(values)


def test_what_is_not_bytes_is_refused() -> None:
    assert RAW.encode(["x", b"y"], None).errors == {0: 'the value: expected binary, got string "x"'}
    with pytest.raises(SchemaError, match="holds bytes"):
        RAW.decode(pa.array([], pa.binary()), declared_schema(str))
    with pytest.raises(SchemaError, match="cannot be made of"):
        RAW.encode(pa.array([1]), None)

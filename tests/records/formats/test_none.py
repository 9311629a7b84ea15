from __future__ import annotations

import pyarrow as pa

from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema


def test_everything_is_null_whatever_the_bytes() -> None:
    form = format_named("NONE")
    assert form.decode(pa.array([b"x", None]), None).column == [None, None]
    decoded = form.decode(pa.array([b"x", None]), declared_schema("A int, B string"), ["B"])
    assert not isinstance(decoded.column, list)
    assert decoded.column.type == pa.struct([("B", pa.string())])
    assert decoded.column.null_count == 2
    assert form.encode(["x", 1], None).values.to_pylist() == [None, None]

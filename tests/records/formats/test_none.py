from __future__ import annotations

import pyarrow as pa

from potok.records.formats.format import format_named
from potok.records.schemas.schema import Schema


def test_everything_is_null_whatever_the_bytes() -> None:
    form = format_named("NONE")
    assert form.decode(pa.array([b"x", None]), None).column == [None, None]
    decoded = form.decode(pa.array([b"x", None]), Schema.of("A int, B string"), ["B"])
    assert not isinstance(decoded.column, list)
    assert decoded.column.type == pa.struct([("B", pa.string())])
    assert decoded.column.null_count == 2
    assert form.encode(["x", 1], None).values.to_pylist() == [None, None]

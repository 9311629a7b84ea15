"""Whatever the bytes are, and whatever objects a program hands over: a row or its error, and nothing is raised."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from potok.errors import PotokError
from potok.records.formats.format import Format
from potok.records.formats.registry import _FORMATS, unguarded
from potok.records.rows import column_of, rows_of
from potok.records.schemas.ddl import parse_ddl
from potok.records.schemas.schema import Schema
from tests import hostile
from tests.records import arrays, texts

FORMATS = [
    # Those of a schema registry need one: registered/test_hostile.py.
    *(name for name in _FORMATS if not name.endswith("_sr")),
    *("sql_json;wrap=false", "protobuf;nulls=wrapper", "protobuf;nulls=default", "sql_delimited;delimiter=;"),
    *("windowed;inner=json", "windowed;size_ms=10;inner=int64", "windowed;size_ms=9223372036854775807"),
]
TYPES = [
    *arrays.TYPES,
    *("key string, start bigint, end bigint", "key bigint, start bigint, end bigint", "a bigint"),
    *("a string not null default 'x', b bigint not null", "a array<bigint not null> not null"),
]
SCHEMAS: list[Schema | None] = [None, *map(parse_ddl, TYPES)]


@lru_cache
def taken(name: str) -> list[tuple[Format, Schema | None]]:
    """The types that a format can hold."""
    form, found = unguarded(name), []
    for schema in SCHEMAS:
        try:
            form.encode([] if schema is None else pa.array([], schema.arrow), schema)
            form.decode(pa.array([], pa.binary()), schema)
        except PotokError:
            continue
        found.append((form, schema))
    return found


@pytest.mark.parametrize("name", FORMATS)
@hostile.explored(40)
@given(data=st.data())
def test_no_object_makes_a_format_raise(name: str, data: st.DataObject) -> None:
    form, schema = data.draw(hostile.drawn(taken(name)))
    objects = data.draw(hostile.rows(0, 5))
    encoded = form.encode(list(objects), schema)
    assert encoded.values.type == pa.binary()
    check(len(objects), encoded.values, encoded.errors)
    if schema is not None:
        fitted = column_of(list(objects), schema)
        check(len(objects), fitted.column, fitted.errors)
        encoded = form.encode(fitted.column, schema)
        check(len(objects), encoded.values, encoded.errors)


@pytest.mark.parametrize("name", FORMATS)
@hostile.explored(40)
@given(data=st.data())
def test_no_bytes_make_a_format_raise(name: str, data: st.DataObject) -> None:
    form, schema = data.draw(hostile.drawn(taken(name)))
    wild = st.sampled_from(hostile.BYTES) | st.binary(max_size=24)
    rows = data.draw(st.lists(wild if schema is None else wild | texts.values(schema), max_size=5))
    rows += data.draw(_nearly_right(form, schema))
    selections: list[list[str] | None] = [None]
    if schema is not None and schema.kind == "struct" and not name.startswith(("windowed", "session")):
        selections.append(list(schema.names[:1]))
    for columns in selections:
        decoded = form.decode(pa.array(rows, pa.binary()), schema, columns)
        check(len(rows), decoded.column, decoded.errors)
        if not isinstance(decoded.column, list):
            decoded.column.validate(full=True)
            rows_of(decoded.column)


def _nearly_right(form: Format, schema: Schema | None) -> st.SearchStrategy[list[bytes]]:
    """What the format writes, damaged."""
    if schema is None:
        return st.just([])
    written = st.lists(arrays.objects(schema), min_size=1, max_size=3).map(
        lambda rows: [data for data in form.encode(rows, schema).values.to_pylist() if data is not None]
    )
    return written.flatmap(lambda whole: st.tuples(*map(hostile.damaged, whole)).map(list))


def check(count: int, column: Any, errors: dict[int, str]) -> None:
    assert len(column) == count
    for row, reason in errors.items():
        assert 0 <= row < count
        # It is going to be a header of a dead letter.
        assert reason.encode()

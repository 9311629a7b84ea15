"""Typed columns for property tests."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from potok.records.rows import column_of
from potok.records.schemas.ddl import parse_ddl
from potok.records.schemas.schema import Schema

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "tinyint": st.integers(-128, 127),
    "double": st.floats(),
    "float": st.floats(width=32),
    "boolean": st.booleans(),
    "binary": st.binary(max_size=6),
    "date": st.dates(),
    "time": st.times().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000, fold=0)),
    "timestamp": st.datetimes(timezones=st.just(dt.UTC)).map(lambda at: at.replace(fold=0)),
    "timestamp_ntz": st.datetimes().map(lambda at: at.replace(fold=0)),
    "decimal(10,2)": st.decimals(min_value=-(10**7), max_value=10**7, places=2).map(lambda d: d or Decimal("0.00")),
}


def objects(schema: Schema) -> st.SearchStrategy[Any]:
    """Python objects that fit the schema."""
    if schema.kind == "struct":
        items = st.tuples(*[st.none() | objects(field.schema) for field in schema.fields])
        return items.map(lambda row: dict(zip(schema.names, row, strict=True)))
    if schema.kind == "list":
        assert schema.item is not None
        return st.lists(st.none() | objects(schema.item), max_size=3)
    if schema.kind == "map":
        assert schema.key is not None
        assert schema.item is not None
        return st.dictionaries(objects(schema.key), st.none() | objects(schema.item), max_size=3)
    return SCALARS[schema.ddl()]


TYPES = [
    *SCALARS,
    "array<string>",
    "array<array<double>>",
    "map<string, double>",
    "map<bigint, array<string>>",
    "struct<>",
    "k int, t time, p decimal(10,2), d date",
    'a string, `b "c` double, d array<string>',
    "a struct<x: bigint, y: array<struct<z: timestamp>>>, m map<string, struct<p: decimal(10,2), q: binary>>",
]


def columns() -> st.SearchStrategy[tuple[Schema, list[Any], pa.Array]]:
    """A schema, rows that fit it, and the column of these, which is a slice of a longer one."""
    return st.one_of([_columns(schema) for schema in map(parse_ddl, TYPES)])


def _columns(schema: Schema) -> st.SearchStrategy[tuple[Schema, list[Any], pa.Array]]:
    rows = st.none() | objects(schema)

    def sliced(before: list[Any], kept: list[Any]) -> tuple[Schema, list[Any], pa.Array]:
        whole = column_of([*before, *kept], schema)
        assert whole.errors == {}
        return schema, kept, whole.column.slice(len(before))

    return st.builds(sliced, st.lists(rows, max_size=2), st.lists(rows, max_size=4))

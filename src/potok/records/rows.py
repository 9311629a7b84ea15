"""Convert typed columns to the objects that lambdas see, and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Iterable
from itertools import repeat
from typing import Any

import pyarrow as pa

from potok.records.conversion.convert import Reading
from potok.records.conversion.fit import fit
from potok.records.formats.format import Column, Decoded
from potok.records.schemas.schema import Schema
from potok.records.value import Value, wrap


def rows_of(column: Column, fields: Container[str] | None = None) -> list[Any]:
    """Return the Python objects: a `Value` for each struct, also nested ones, a dict for a map, a datetime for an
    instant.

    The dicts of a dynamic column become values; its other objects are unchanged. With `fields`, typed structs
    have only these fields.
    """
    if isinstance(column, list):
        return [wrap(obj) for obj in column]
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return _structs(column, fields) if pa.types.is_struct(column.type) else _rows(column)


def _rows(column: pa.Array) -> list[Any]:
    arrow = column.type
    if pa.types.is_struct(arrow):
        return _structs(column)
    if pa.types.is_map(arrow):
        return _nested(
            column,
            lambda start, end, parts: dict(zip(parts[0][start:end], parts[1][start:end], strict=True)),
            (column.keys, column.items),
        )
    if pa.types.is_list(arrow):
        return _nested(column, lambda start, end, parts: parts[0][start:end], (column.values,))
    if pa.types.is_timestamp(arrow):
        return _instants(column)
    plain: list[Any] = column.to_pylist()
    return plain


def _structs(column: pa.StructArray, fields: Container[str] | None = None) -> list[Any]:
    names = [field.name for field in column.type if fields is None or field.name in fields]
    if not names:
        return [Value() if there else None for there in column.is_valid().to_pylist()]
    parts: list[list[Any]] = [_rows(column.field(name)) for name in names]
    rows: Iterable[Value] = map(Value, map(zip, repeat(names), zip(*parts, strict=True)))
    if column.null_count == 0:
        return list(rows)
    return [row if there else None for row, there in zip(rows, column.is_valid().to_pylist(), strict=True)]


def _nested(column: pa.Array, cut: Any, children: tuple[pa.Array, ...]) -> list[Any]:
    # The children are not sliced with the column, and its offsets point into them.
    parts = [_rows(child) for child in children]
    offsets = column.offsets.to_pylist()
    valid = column.is_valid().to_pylist() if column.null_count else repeat(True, len(column))
    return [cut(offsets[i], offsets[i + 1], parts) if there else None for i, there in enumerate(valid)]


def _instants(column: pa.Array) -> list[Any]:
    # numpy creates the objects three times faster than Arrow, but without a zone.
    naive: list[Any] = column.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False).tolist()
    if column.type.tz is None:
        return naive
    return [None if at is None else at.replace(tzinfo=dt.UTC) for at in naive]


def column_of(rows: list[Any], schema: Schema) -> Decoded:
    """Return Python objects as a column of the declared type.

    A row that does not fit is null and has an error that names its field. Fields that the schema does not have are
    ignored; dataclasses and records are converted field by field.
    """
    fitted = fit(rows, schema, Reading.PYTHON)
    return Decoded(fitted.column, fitted.errors)

"""Convert typed columns to the objects that lambdas see, and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Container, Iterable
from itertools import repeat
from typing import Any

import pyarrow as pa

from potok.records.conversion.convert import Reading, spelled
from potok.records.conversion.fit import fit
from potok.records.declared_class import constructor_of
from potok.records.formats.format import Column, Decoded
from potok.records.schemas.schema import Schema
from potok.records.value import Value, wrap


def rows_of(column: Column, fields: Container[str] | None = None) -> list[Any]:
    """Return the Python objects: for each struct, also nested ones, an instance of its class or a `Value`; a dict for a
    map, a datetime for an instant.

    The dicts of a dynamic column become values; its other objects are unchanged. With `fields`, typed structs
    are values with only these fields.
    """
    if isinstance(column, list):
        return [wrap(obj) for obj in column]
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    arrow = column.type
    return _structs(column, arrow, fields) if pa.types.is_struct(arrow) else _rows(column, arrow)


def _rows(column: pa.Array, arrow: pa.DataType) -> list[Any]:
    # Classes come from the type of the whole: the type of a nested column may have lost them.
    if pa.types.is_struct(arrow):
        return _structs(column, arrow)
    if pa.types.is_map(arrow):
        return _nested(
            column,
            lambda start, end, parts: dict(zip(parts[0][start:end], parts[1][start:end], strict=True)),
            ((column.keys, arrow.key_type), (column.items, arrow.item_type)),
        )
    if pa.types.is_list(arrow):
        return _nested(column, lambda start, end, parts: parts[0][start:end], ((column.values, arrow.value_type),))
    if pa.types.is_timestamp(arrow):
        return _instants(column)
    plain: list[Any] = column.to_pylist()
    return plain


def _structs(column: pa.StructArray, arrow: pa.DataType, fields: Container[str] | None = None) -> list[Any]:
    names = [field.name for field in arrow if fields is None or field.name in fields]
    if not names:
        return [Value() if there else None for there in column.is_valid().to_pylist()]
    parts: list[list[Any]] = [_rows(column.field(name), arrow.field(name).type) for name in names]
    make = Value if fields is not None else constructor_of(arrow)
    rows: Iterable[Any] = map(zip, repeat(names), zip(*parts, strict=True))
    if column.null_count == 0:
        return list(map(make, rows))
    # A null row has null fields, which a class may reject.
    return [make(row) if there else None for row, there in zip(rows, column.is_valid().to_pylist(), strict=True)]


def _nested(column: pa.Array, cut: Any, children: tuple[tuple[pa.Array, pa.DataType], ...]) -> list[Any]:
    # The children are not sliced with the column, and its offsets point into them.
    parts = [_rows(child, arrow) for child, arrow in children]
    offsets = column.offsets.to_pylist()
    valid = column.is_valid().to_pylist() if column.null_count else repeat(True, len(column))
    return [cut(offsets[i], offsets[i + 1], parts) if there else None for i, there in enumerate(valid)]


def _instants(column: pa.Array) -> list[Any]:
    # numpy creates the objects three times faster than Arrow, but without a zone.
    naive: list[Any] = column.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False).tolist()
    if column.type.tz is None:
        return naive
    return [None if at is None else at.replace(tzinfo=dt.UTC) for at in naive]


def converter_of(arrow: pa.DataType | None) -> Callable[[Any], Any]:
    """Return the function that turns stored data of a type into what lambdas see; without a type, it is `wrap`."""
    return wrap if arrow is None else _converter(arrow) or wrap


def _converter(arrow: pa.DataType) -> Callable[[Any], Any] | None:
    """Return the conversion of a type; None if its data contains no structs."""
    if pa.types.is_struct(arrow):
        return _struct_converter(arrow)
    inner = arrow.value_type if pa.types.is_list(arrow) else arrow.item_type if pa.types.is_map(arrow) else None
    item = None if inner is None else _converter(inner)
    if item is None:
        return None
    convert: Callable[[Any], Any] = item
    if pa.types.is_list(arrow):
        return lambda obj: obj if obj is None else [convert(each) for each in obj]
    return lambda obj: obj if obj is None else {key: convert(each) for key, each in obj.items()}


def _struct_converter(arrow: pa.DataType) -> Callable[[Any], Any]:
    make = constructor_of(arrow)
    found = {field.name: _converter(field.type) for field in arrow}
    nested = {name: convert for name, convert in found.items() if convert is not None}

    def convert(obj: Any) -> Any:
        # A struct inside stored data comes back as a `Value`.
        if type(obj) is not dict and type(obj) is not Value:
            return obj
        if nested:
            obj = {**obj, **{name: inner(obj[name]) for name, inner in nested.items() if name in obj}}
        return make(obj) if make is Value or len(obj) == len(found) else Value(obj)

    return convert


def completed(column: pa.Array, schema: Schema) -> Decoded:
    """Return a column as its classes complete it in `__post_init__`; a row that a class rejects is an error."""
    try:
        return column_of(rows_of(column), schema)
    except Exception:  # noqa: BLE001 - the user's class may raise anything; found again row by row
        rows: list[Any] = []
    errors: dict[int, str] = {}
    for row in range(len(column)):
        try:
            rows += rows_of(column.slice(row, 1))
        except Exception as error:  # noqa: BLE001
            errors[row] = f"{type(error).__name__}: {spelled(error)}"
            rows.append(None)
    fitted = column_of(rows, schema)
    return Decoded(fitted.column, {**fitted.errors, **errors})


def column_of(rows: list[Any], schema: Schema) -> Decoded:
    """Return Python objects as a column of the declared type.

    A row that does not fit is null and has an error that names its field. Fields that the schema does not have are
    ignored; dataclasses and records are converted field by field.
    """
    fitted = fit(rows, schema, Reading.PYTHON)
    return Decoded(fitted.column, fitted.errors)

"""Fit rows to the columns of an existing table: what cannot be converted is rejected row by row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sinks.errors import SinkMisfit, too_many_refused
from potok.sinks.sink_spec import Failures


class TooManyRefused(ValueError):
    """So many rows of a batch are rejected that the table, not the rows, must be wrong."""


def check_fit(step: str, label: str, rows: pa.Schema, table: pa.Schema) -> None:
    """Raise unless each column of the rows can be one of the table, and each required column has values."""
    for field in rows:
        if table.get_field_index(field.name) < 0:
            hint = "add it to the table; or leave the field out with map_values"
            raise SinkMisfit(step, label, f'it has no column "{field.name}" of type {field.type}', hint)
        wanted = table.field(field.name).type
        try:
            _cast(pa.nulls(0, field.type), wanted)
        except pa.ArrowException as error:
            hint = "convert it with map_values; or name another table"
            raise SinkMisfit(step, label, f'its column "{field.name}" is {wanted}, not {field.type}', hint) from error
    required = [field.name for field in table if not field.nullable and rows.get_field_index(field.name) < 0]
    if required:
        hint = "add the field with map_values; or make the column optional"
        raise SinkMisfit(step, label, f'its column "{required[0]}" is required, and the records have none', hint)


def fit(rows: pa.Table, schema: pa.Schema, *, required: pa.Array | None = None) -> tuple[pa.Table, Failures]:
    """Return rows with the column types of a schema, and the rows that do not fit, by index; these are left out.

    Args:
        rows: Rows whose columns the schema has; others are passed on.
        schema: The columns of the table.
        required: The rows whose required columns must have values; all by default.
    """
    failures: Failures = {}
    columns: dict[str, pa.ChunkedArray] = {}
    for name in rows.column_names:
        column = rows.column(name)
        if schema.get_field_index(name) < 0:
            columns[name] = column
            continue
        field = schema.field(name)
        bad = refused_rows(column, partial(_cast, wanted=field.type))
        failures |= {row: f'column "{name}": {reason}' for row, reason in bad.items() if row not in failures}
        columns[name] = _cast(_nulled(column, bad), field.type)
        if not field.nullable and columns[name].null_count:
            nulls = columns[name].is_null() if required is None else pc.and_(columns[name].is_null(), required)
            what = f'the column "{name}" is required'
            failures |= {row: what for row in pc.indices_nonzero(nulls).to_pylist() if row not in failures}
    if cause := too_many_refused(failures):
        raise TooManyRefused(cause)
    return without(pa.table(columns), failures), failures


def without(rows: pa.Table, failures: Failures) -> pa.Table:
    """Return rows without those that are rejected."""
    return rows.filter(_kept(failures, len(rows))) if failures else rows


def refused_rows(column: pa.ChunkedArray | pa.Table, work: Callable[[Any], object]) -> Failures:
    """Return the rows for which `work` raises, found by halves; it is called once if all are good."""
    failures: Failures = {}

    def search(first: int, count: int) -> None:
        try:
            work(column.slice(first, count))
        except pa.ArrowInvalid as error:
            if count > 1:
                search(first, count // 2)
                search(first + count // 2, count - count // 2)
                return
            failures[first] = str(error)
            if cause := too_many_refused(failures):
                raise TooManyRefused(cause) from error

    if len(column):
        search(0, len(column))
    return failures


def _cast(column: pa.Array | pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    # A table has microseconds, records may have nanoseconds.
    return pc.cast(column, options=pc.CastOptions(wanted, allow_time_truncate=True))


def _nulled(column: pa.ChunkedArray, failures: Failures) -> pa.ChunkedArray:
    return pc.if_else(_kept(failures, len(column)), column, None) if failures else column


def _kept(failures: Failures, count: int) -> pa.Array:
    kept = np.ones(count, np.bool_)
    kept[list(failures)] = False
    return pa.array(kept)

"""Convert columns of records to the frames that a user's function gets, and its results back to columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.operators.core.call import plain_all
from potok.operators.core.chunk import Column
from potok.records.conversion.fit import with_default
from potok.records.formats.format import Decoded
from potok.records.rows import column_of
from potok.records.schemas.schema import Field, Schema
from potok.topology.nodes import FrameFormat

WHOLE = "value"
"""The column of values without fields."""


class ResultMisfitError(Exception):
    """A result that is not a frame or a column, or that has not the columns or the number of rows it should have."""


def table_of(value: pa.Array, key: Column | None) -> pa.Table:
    """Return values as a table: a column for each field, after the key if there is one."""
    columns: dict[str, Any] = {} if key is None else {"key": key}
    if pa.types.is_struct(value.type):
        columns |= {field.name: part for field, part in zip(value.type, value.flatten(), strict=True)}
    else:
        columns[WHOLE] = value
    return pa.table(columns)


def frame_of(table: pa.Table, format: FrameFormat) -> Any:
    """Return a table as the frame of this library. The type of a column does not depend on its values."""
    if format == "pandas":
        return table.to_pandas(types_mapper=_pandas_types(), ignore_metadata=True)
    if format == "polars":
        import polars

        return polars.from_arrow(table)
    return table


def _pandas_types() -> Callable[[pa.DataType], Any]:
    """Return pandas' type for an Arrow type: a nullable one where nulls would make the column one of floats or
    objects."""
    import pandas as pd

    types = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    return types.get


def columns_of(result: Any) -> pa.Table | pa.Array:
    """Return the result of a function as a table, or as a single column."""
    if isinstance(result, pa.Table | pa.Array):
        return result
    if isinstance(result, pa.ChunkedArray):
        return result.combine_chunks()
    if isinstance(result, pa.RecordBatch):
        return pa.Table.from_batches([result])
    if isinstance(result, Mapping):
        return pa.table({name: _array(column) for name, column in result.items()})
    if hasattr(result, "to_arrow"):  # Polars
        return columns_of(result.to_arrow())
    if hasattr(result, "iloc") and hasattr(result, "columns"):
        return pa.Table.from_pandas(result, preserve_index=False).replace_schema_metadata()
    return _array(result)


def _array(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks()
    if isinstance(column, pa.Array):
        return column
    if hasattr(column, "to_arrow"):
        return column.to_arrow()
    if not hasattr(column, "__array__") and not isinstance(column, list | tuple):
        raise ResultMisfitError(f"the function returned {type(column).__name__}, which is not a frame or a column")
    # A column of pandas marks what is missing with NaN.
    found = pa.array(column, from_pandas=hasattr(column, "iloc"))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def take_rows(found: pa.Table, name: str) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    """Return a result without the column that numbers its rows, and that column."""
    if name not in found.column_names:
        raise ResultMisfitError(f'the result has no column "{name}"')
    rows = found.column(name).cast(pa.int64())
    if rows.null_count:
        raise ResultMisfitError(f'the column "{name}" of the result has nulls')
    return found.drop_columns([name]), rows.to_numpy()


def fitted(found: pa.Table | pa.Array, schema: Schema | None) -> Decoded:
    """Return a result as values of the declared type, or as dynamic values."""
    if schema is None:
        return Decoded(plain_all(found.to_pylist()))
    if schema.kind != "struct":
        return _fit(_single(found), schema)
    if isinstance(found, pa.Array):
        if not pa.types.is_struct(found.type):
            raise ResultMisfitError(f"the result is one column of {found.type}; return a frame, or a dict of columns")
        found = pa.Table.from_struct_array(found)
    errors: dict[int, str] = {}
    columns = [_field(found, field, errors) for field in schema.fields]
    return Decoded(pa.StructArray.from_arrays(columns, fields=list(schema.arrow)), errors)


def _single(found: pa.Table | pa.Array) -> pa.Array:
    if isinstance(found, pa.Array):
        return found
    if found.num_columns != 1:
        names = ", ".join(found.column_names) or "none"
        raise ResultMisfitError(f"the result should have one column, and has {names}")
    return found.column(0).combine_chunks()


def _field(found: pa.Table, field: Field, errors: dict[int, str]) -> pa.Array:
    if field.name not in found.column_names:
        if not field.has_default:
            names = ", ".join(found.column_names) or "none"
            raise ResultMisfitError(f'the result has no column "{field.name}"; it has {names}')
        return with_default(pa.nulls(len(found), field.type), np.ones(len(found), np.bool_), field)
    fit = _fit(found.column(field.name).combine_chunks(), field.schema)
    for row, text in fit.errors.items():
        errors.setdefault(row, f'field "{field.name}": {text}')
    column = fit.column
    assert isinstance(column, pa.Array)
    if not field.nullable and column.null_count:
        if field.has_default:
            missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
            return with_default(column, missing, field)
        for row in pc.indices_nonzero(column.is_null()).to_pylist():
            errors.setdefault(row, f'field "{field.name}" is missing or null')
    return column


def _fit(column: pa.Array, schema: Schema) -> Decoded:
    """Convert one column: at once if its type is flat, and else value by value, which checks what is required."""
    if schema.kind == "scalar":
        return Decoded(column.cast(schema.arrow))
    return column_of(column.to_pylist(maps_as_pydicts="strict"), schema)

"""CAST: which types can be cast to which, and how a column is cast."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.expressions.conversions.numbers import cast_number
from potok.sql.expressions.conversions.parse_text import parse_column, parses
from potok.sql.expressions.conversions.show_text import show_column, shows
from potok.sql.expressions.unify import implicit
from potok.sql.functions.function import Context
from potok.sql.types import DATE, NULL, TIME, TIMESTAMP, VARCHAR, is_number, type_name

__all__ = ["can_cast", "cast_column", "implicit"]


def can_cast(from_: pa.DataType, to: pa.DataType) -> bool:
    """Return whether CAST(x AS to) is allowed for an x of this type."""
    if from_ in (to, NULL):
        return True
    if to == VARCHAR:
        return shows(from_)
    if from_ == VARCHAR:
        return parses(to)
    if is_number(from_) and is_number(to):
        return True
    if pa.types.is_list(from_) and pa.types.is_list(to):
        return can_cast(from_.value_type, to.value_type)
    if pa.types.is_map(from_) and pa.types.is_map(to):
        return can_cast(from_.key_type, to.key_type) and can_cast(from_.item_type, to.item_type)
    if pa.types.is_struct(from_) and pa.types.is_struct(to):
        known = {field.name: field.type for field in to}
        return all(can_cast(field.type, known[field.name]) for field in from_ if field.name in known)
    return (from_, to) in ((TIMESTAMP, DATE), (TIMESTAMP, TIME), (DATE, TIMESTAMP))


def cast_column(column: pa.Array, to: pa.DataType, context: Context) -> pa.Array:
    """Cast a column explicitly. A value that cannot be converted is NULL and reported; TypeError if the types cannot be
    cast."""
    from_ = column.type
    if from_ == to:
        return column
    if not can_cast(from_, to):
        raise TypeError(f"{type_name(from_)} cannot be cast to {type_name(to)}")
    if from_ == NULL:
        return pa.nulls(len(column), to)
    if to == VARCHAR:
        return show_column(column)
    if from_ == VARCHAR:
        return parse_column(column, to, context)
    if is_number(from_) and is_number(to):
        return cast_number(column, to, context)
    if pa.types.is_list(from_) and pa.types.is_list(to):
        return _cast_list(column, to, context)
    if pa.types.is_map(from_) and pa.types.is_map(to):
        return _cast_map(column, to, context)
    if pa.types.is_struct(from_) and pa.types.is_struct(to):
        return _cast_struct(column, to, context)
    if (from_, to) == (TIMESTAMP, TIME):
        # The time of day is rounded down, which Arrow only does on request.
        return pc.cast(pc.cast(column, pa.time64("us")), TIME, safe=False)
    return pc.cast(column, to, safe=False)


def _cast_list(column: pa.Array, to: pa.DataType, context: Context) -> pa.Array:
    column = compact(column)
    values = _cast_elements(column.values, to.value_type, column.offsets, context)
    return pa.ListArray.from_arrays(column.offsets, values, type=to, mask=_missing(column))


def _cast_map(column: pa.Array, to: pa.DataType, context: Context) -> pa.Array:
    column = compact(column)
    keys = _cast_elements(column.keys, to.key_type, column.offsets, context)
    if keys.null_count:
        # A map without one of its keys would be another map.
        rows = np.zeros(len(column), bool)
        lost = np.flatnonzero(keys.is_null().to_numpy(zero_copy_only=False))
        rows[np.searchsorted(column.offsets.to_numpy(), lost, side="right") - 1] = True
        return _cast_map(pc.if_else(pa.array(rows), pa.scalar(None, column.type), column), to, context)
    items = _cast_elements(column.items, to.item_type, column.offsets, context)
    return pa.MapArray.from_arrays(column.offsets, keys, items, type=to, mask=_missing(column))


def _cast_struct(column: pa.Array, to: pa.DataType, context: Context) -> pa.Array:
    fields = [
        cast_column(pc.struct_field(column, [at]), field.type, context)
        if (at := column.type.get_field_index(field.name)) >= 0
        else pa.nulls(len(column), field.type)
        for field in to
    ]
    return pa.StructArray.from_arrays(fields, fields=list(to), mask=_missing(column))


def _cast_elements(values: pa.Array, to: pa.DataType, offsets: pa.Array, context: Context) -> pa.Array:
    inner = Context(now_ms=context.now_ms)
    found = cast_column(values, to, inner)
    if inner.failures:
        rows = np.searchsorted(offsets.to_numpy(), list(inner.failures), side="right") - 1
        for row, reason in zip(rows.tolist(), inner.failures.values(), strict=True):
            context.failures.setdefault(row, reason)
    return found


def compact(column: pa.Array) -> pa.Array:
    """Return a list or map column with exactly the elements of its rows: not a slice, and nothing under a NULL."""
    offsets = column.offsets
    whole = column.offset == 0 and len(column) > 0 and offsets[0].as_py() == 0
    elements = column.keys if pa.types.is_map(column.type) else column.values
    if whole and offsets[-1].as_py() == len(elements) and not column.null_count:
        return column
    return column.take(pa.array(np.arange(len(column))))


def _missing(column: pa.Array) -> pa.Array | None:
    return column.is_null() if column.null_count else None

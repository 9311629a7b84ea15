"""Schemas from Arrow types."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from potok.errors import SchemaError
from potok.records.declared_class import class_of
from potok.records.schemas.column_types import LOCAL_TIMESTAMP, TIME, TIMESTAMP
from potok.records.schemas.schema import Field, Schema

# One type for each kind of value, so that downstream code has few cases: other widths of text and lists, and
# other units of time, become the one that Potok computes with.
_AS_THEY_ARE = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_())
_BECOME = {
    pa.null(): pa.string(),
    pa.string(): pa.string(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.date32(): pa.date32(),
    pa.date64(): pa.date32(),
    pa.time32("s"): TIME,
    pa.time32("ms"): TIME,
}


def schema_of_arrow(declared: pa.DataType | pa.Schema | pa.Field) -> Schema:
    """Return the schema of an Arrow type; fields that are not nullable there are required here."""
    if isinstance(declared, pa.Schema):
        return _struct(declared)
    if isinstance(declared, pa.Field):
        return _struct([declared])
    return _of_type(declared)


def _of_type(arrow: pa.DataType) -> Schema:
    types = pa.types
    if types.is_struct(arrow):
        return _struct(arrow, class_of(arrow))
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        return Schema.list_of(_of_type(arrow.value_type), nullable=arrow.value_field.nullable)
    if types.is_map(arrow):
        return Schema.map_of(_of_type(arrow.key_type), _of_type(arrow.item_type), nullable=arrow.item_field.nullable)
    if types.is_dictionary(arrow):
        return _of_type(arrow.value_type)
    return Schema.scalar(_scalar(arrow))


def _scalar(arrow: pa.DataType) -> pa.DataType:
    if arrow in _AS_THEY_ARE or pa.types.is_decimal128(arrow):
        return arrow
    if arrow in _BECOME:
        return _BECOME[arrow]
    if pa.types.is_timestamp(arrow):
        return LOCAL_TIMESTAMP if arrow.tz is None else TIMESTAMP
    if pa.types.is_fixed_size_binary(arrow):
        return pa.binary()
    raise SchemaError(
        f"a value cannot be of type {arrow}",
        hint="use numbers, text, bytes, dates, times, timestamps or lists, maps and structs of these",
    )


def _struct(fields: Iterable[pa.Field], declared: type | None = None) -> Schema:
    return Schema.struct((Field(field.name, _of_type(field.type), field.nullable) for field in fields), declared)

"""Write rows with a Protobuf schema that was not made from their columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from google.protobuf import descriptor_pb2

from potok.errors import SchemaError
from potok.records.conversion.binary_rules import unscaled_bytes
from potok.records.conversion.convert import MisfitError
from potok.records.formats.registered.avro_types import field_named
from potok.records.formats.registered.proto_types import WRAPPERS, is_map, map_types, real_oneofs
from potok.records.schemas.schema import Schema

_Proto: Final = descriptor_pb2.FieldDescriptorProto
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)

Filler = Callable[[Any, Any], None]
"""Fills a message from a row."""


def message_filler(descriptor: Any, schema: Schema, schema_id: int | str, *, fold: bool) -> Filler:
    """Return a function that fills a message of a type. Raises `SchemaError` for a column without a field."""
    parts: list[tuple[str, Callable[[Any, Any], None]]] = []
    for field in descriptor.fields:
        column = field_named(schema, field.name, fold)
        if column is not None:
            parts.append((column.name, _setter(field, column.schema, schema_id, fold)))
    for name, fields in real_oneofs(descriptor).items():
        column = field_named(schema, name, fold)
        if column is not None and column.schema.kind == "struct":
            parts.append((column.name, _oneof_setter(fields, column.schema, schema_id, fold)))
    written = {name for name, _ in parts}
    for name in schema.names:
        if name not in written:
            hint = "leave the column out, or add the field to the schema"
            raise SchemaError(f'schema {schema_id} has no field for the column "{name}"', hint=hint)

    def fill(message: Any, row: Any) -> None:
        for name, put in parts:
            if row[name] is not None:
                put(message, row[name])

    return fill


def _oneof_setter(fields: list[Any], schema: Schema, schema_id: int | str, fold: bool) -> Filler:
    parts: list[tuple[str, Filler]] = []
    for field in fields:
        column = field_named(schema, field.name, fold)
        if column is not None:
            parts.append((column.name, _setter(field, column.schema, schema_id, fold)))

    def put(message: Any, row: Any) -> None:
        for name, put_one in parts:
            if row[name] is not None:
                put_one(message, row[name])
                return

    return put


def _setter(field: Any, schema: Schema, schema_id: int | str, fold: bool) -> Filler:
    name = field.name
    if is_map(field):
        if schema.kind != "map" or schema.item is None:
            raise _misfit(field, schema, schema_id)
        return _map_setter(name, _filler(map_types(field)[1], schema.item, schema_id, fold))
    if field.is_repeated:
        if schema.kind != "list" or schema.item is None:
            raise _misfit(field, schema, schema_id)
        return _list_setter(name, _filler(field, schema.item, schema_id, fold))
    fill, convert = _filler(field, schema, schema_id, fold), _converter(field)
    if fill is None:
        return lambda message, value: setattr(message, name, convert(value))

    def put(message: Any, value: Any) -> None:
        part = getattr(message, name)
        part.SetInParent()
        fill(part, value)

    return put


def _list_setter(name: str, fill: Filler | None) -> Filler:
    def put(message: Any, items: Any) -> None:
        made = getattr(message, name)
        for item in items:
            if item is None:
                raise MisfitError(f'field "{name}": Protobuf has no null in a list')
            if fill is None:
                made.append(item)
            else:
                fill(made.add(), item)

    return put


def _map_setter(name: str, fill: Filler | None) -> Filler:
    def put(message: Any, items: Any) -> None:
        made = getattr(message, name)
        for key, item in items.items():
            if item is None:
                raise MisfitError(f'field "{name}": Protobuf has no null in a map')
            if fill is None:
                made[key] = item
            else:
                fill(made[key], item)

    return put


def _converter(field: Any) -> Callable[[Any], Any]:
    """Return what makes a value one of a scalar field: an enum takes its names."""
    if field.type != _Proto.TYPE_ENUM:
        return lambda value: value
    numbers: dict[str, int] = {value.name: value.number for value in field.enum_type.values}

    def convert(value: Any) -> int:
        if value not in numbers:
            raise MisfitError(f'field "{field.name}": {value!r} is not one of {", ".join(numbers)}')
        return numbers[value]

    return convert


def _filler(field: Any, schema: Schema, schema_id: int | str, fold: bool) -> Filler | None:
    """Return what fills the message of a field; None for a scalar."""
    if field.type != _Proto.TYPE_MESSAGE:
        if schema.kind != "scalar":
            raise _misfit(field, schema, schema_id)
        return None
    name = field.message_type.full_name
    if schema.kind == "struct":
        return message_filler(field.message_type, schema, schema_id, fold=fold)
    if schema.kind == "scalar" and name in WRAPPERS:
        return _fill_wrapper
    if pa.types.is_decimal(schema.arrow) and name == "confluent.type.Decimal":
        return _decimal_filler(schema.arrow.precision, schema.arrow.scale)
    if schema.kind == "scalar" and name in _FILL_KNOWN:
        return _FILL_KNOWN[name]
    raise _misfit(field, schema, schema_id)


def _misfit(field: Any, schema: Schema, schema_id: int | str) -> SchemaError:
    message = f'field "{field.name}" of schema {schema_id} does not hold {schema}'
    return SchemaError(message, hint="select a column of the type of the field")


def _fill_wrapper(message: Any, value: Any) -> None:
    message.value = value


def _fill_timestamp(message: Any, at: dt.datetime) -> None:
    # Rounded down, also before 1970.
    us = (at.replace(tzinfo=dt.UTC) - _EPOCH) // _MICROSECOND
    message.seconds, message.nanos = us // 1_000_000, us % 1_000_000 * 1000


def _fill_date(message: Any, day: dt.date) -> None:
    message.year, message.month, message.day = day.year, day.month, day.day


def _fill_time(message: Any, at: dt.time) -> None:
    message.hours, message.minutes, message.seconds, message.nanos = (
        at.hour,
        at.minute,
        at.second,
        at.microsecond * 1000,
    )


def _decimal_filler(precision: int, scale: int) -> Filler:
    def fill(message: Any, number: Any) -> None:
        message.value, message.precision, message.scale = unscaled_bytes(number), precision, scale

    return fill


_FILL_KNOWN: dict[str, Filler] = {
    "google.protobuf.Timestamp": _fill_timestamp,
    "google.type.Date": _fill_date,
    "google.type.TimeOfDay": _fill_time,
}

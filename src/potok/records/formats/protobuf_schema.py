"""The Protobuf message of declared columns: proto3, numbered by position from one.

Instants, dates, times and decimals are the messages that Confluent's converters use: `google.protobuf.Timestamp`,
`google.type.Date`, `google.type.TimeOfDay` and `confluent.type.Decimal`. Names are not part of the bytes, and
are generated.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from potok.errors import SchemaError
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema

_Field: Final = descriptor_pb2.FieldDescriptorProto
_ROOT = "Value"

_PRIMITIVES = (
    (pa.types.is_boolean, _Field.TYPE_BOOL),
    (pa.types.is_int64, _Field.TYPE_INT64),
    (pa.types.is_integer, _Field.TYPE_INT32),
    (pa.types.is_float32, _Field.TYPE_FLOAT),
    (pa.types.is_float64, _Field.TYPE_DOUBLE),
    (pa.types.is_string, _Field.TYPE_STRING),
    (pa.types.is_binary, _Field.TYPE_BYTES),
)
_KNOWN: dict[str, list[int]] = {
    "Timestamp": [_Field.TYPE_INT64, _Field.TYPE_INT32],
    "Date": [_Field.TYPE_INT32] * 3,
    "TimeOfDay": [_Field.TYPE_INT32] * 4,
    "Decimal": [_Field.TYPE_BYTES, _Field.TYPE_UINT32, _Field.TYPE_INT32],
}
_WRAPPERS = {f"Wrapper{kind}": kind for _, kind in _PRIMITIVES}
"""The messages of `google.protobuf.Int32Value` and the others, whose first field holds the value."""


@lru_cache(maxsize=64)
def message_class(arrow: pa.DataType, nulls: str = "optional") -> Any:
    """Return the message class for a struct of this type; field number n is its attribute `fn`."""
    file = descriptor_pb2.FileDescriptorProto(name="value.proto", package="potok", syntax="proto3")
    for name, types in {**_KNOWN, **{name: [kind] for name, kind in _WRAPPERS.items()}}.items():
        message = file.message_type.add(name=name)
        for number, kind in enumerate(types, 1):
            message.field.add(name=f"f{number}", number=number, type=kind, label=_Field.LABEL_OPTIONAL)
    schema = declared_schema(arrow)
    assert schema is not None
    _message(file.message_type.add(name=_ROOT), schema, f".potok.{_ROOT}", nulls)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"potok.{_ROOT}"))


def _message(message: Any, schema: Schema, path: str, nulls: str) -> None:
    for number, field in enumerate(schema.fields, 1):
        made = message.field.add(name=f"f{number}", number=number, label=_Field.LABEL_OPTIONAL)
        inner = field.schema
        if inner.kind == "list":
            assert inner.item is not None
            made.label = _Field.LABEL_REPEATED
            _type(made, _single(inner.item, field.name), message, path, number, nulls)
        elif inner.kind == "map":
            made.label, made.type = _Field.LABEL_REPEATED, _Field.TYPE_MESSAGE
            made.type_name = f"{path}.F{number}Entry"
            _entry(inner, field.name, message, path, number, nulls)
        else:
            _type(made, inner, message, path, number, nulls)
        if made.label == _Field.LABEL_OPTIONAL and made.type != _Field.TYPE_MESSAGE:
            _mark(made, message, number, nulls)


def _mark(made: Any, message: Any, number: int, nulls: str) -> None:
    """Make a scalar field nullable."""
    if nulls == "wrapper":
        name = next(name for name, kind in _WRAPPERS.items() if kind == made.type)
        made.type, made.type_name = _Field.TYPE_MESSAGE, f".potok.{name}"
    elif nulls == "optional":
        made.proto3_optional = True
        made.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_f{number}")


def _entry(schema: Schema, name: str, message: Any, path: str, number: int, nulls: str) -> None:
    """Return the message of the entries of a map; the message of its values is declared next to it, where it
    is allowed.
    """
    assert schema.key is not None
    assert schema.item is not None
    entry = message.nested_type.add(name=f"F{number}Entry")
    entry.options.map_entry = True
    key = entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL)
    value = entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL)
    _type(key, schema.key, message, path, number, nulls)
    _type(value, _single(schema.item, name), message, path, number, nulls)


def _type(made: Any, schema: Schema, message: Any, path: str, number: int, nulls: str) -> None:
    if schema.kind == "struct":
        made.type, made.type_name = _Field.TYPE_MESSAGE, f"{path}.M{number}"
        _message(message.nested_type.add(name=f"M{number}"), schema, made.type_name, nulls)
        return
    known = known_message(schema.arrow)
    if known is not None:
        made.type, made.type_name = _Field.TYPE_MESSAGE, f".potok.{known}"
        return
    made.type = next(found for matches, found in _PRIMITIVES if matches(schema.arrow))


def known_message(arrow: pa.DataType) -> str | None:
    """Return the name of the message that represents a scalar, if there is one."""
    if pa.types.is_timestamp(arrow):
        return "Timestamp"
    if pa.types.is_date(arrow):
        return "Date"
    if pa.types.is_time(arrow):
        return "TimeOfDay"
    return "Decimal" if pa.types.is_decimal(arrow) else None


def _single(schema: Schema, name: str) -> Schema:
    if schema.kind in ("list", "map"):
        raise SchemaError(
            f'column "{name}" cannot be written as Protobuf: it has arrays or maps right inside an array or map',
            hint="put a STRUCT between them, for example ARRAY<STRUCT<ITEMS ARRAY<INT>>>",
        )
    return schema


NULLS = ("optional", "wrapper", "default")
"""How a null scalar is written: by a field that is `optional`, by a wrapper message, or not at all, so that it is
read as the default of its type: 0, false, or empty."""

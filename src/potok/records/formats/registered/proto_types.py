"""The columns of a Protobuf message, and how its fields are read into columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from google.protobuf import descriptor_pb2

from potok.records.conversion.convert import MisfitError
from potok.records.formats.registered.avro_types import MOST_DIGITS, field_named
from potok.records.formats.registered.proto_schemas import ProtoSchema
from potok.records.schema_registry.errors import FieldBudget, UnknownSchema
from potok.records.schemas.column_types import TIME, TIMESTAMP
from potok.records.schemas.schema import Field, Schema

_Proto: Final = descriptor_pb2.FieldDescriptorProto
_DEEPEST = 50
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_SCALARS = {
    **dict.fromkeys((_Proto.TYPE_INT32, _Proto.TYPE_SINT32, _Proto.TYPE_SFIXED32), pa.int32()),
    **dict.fromkeys((_Proto.TYPE_INT64, _Proto.TYPE_SINT64, _Proto.TYPE_SFIXED64), pa.int64()),
    **dict.fromkeys((_Proto.TYPE_UINT32, _Proto.TYPE_FIXED32), pa.int64()),
    **dict.fromkeys((_Proto.TYPE_UINT64, _Proto.TYPE_FIXED64), pa.int64()),
    _Proto.TYPE_DOUBLE: pa.float64(),
    _Proto.TYPE_FLOAT: pa.float32(),
    _Proto.TYPE_BOOL: pa.bool_(),
    _Proto.TYPE_STRING: pa.string(),
    _Proto.TYPE_BYTES: pa.binary(),
    _Proto.TYPE_ENUM: pa.string(),
}

KNOWN = {
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.type.Date": pa.date32(),
    "google.type.TimeOfDay": TIME,
    "confluent.type.Decimal": pa.decimal128(MOST_DIGITS, 0),
}
"""Messages that are scalars in columns."""

WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}


def columns_of_message(schema: ProtoSchema, descriptor: Any, *, sql: bool, unwraps: bool) -> Schema | None:
    """Return the type of a message as a column; None for one without fields.

    With `sql`, types are those that ksqlDB infers: FLOAT is DOUBLE, and a oneof is a struct. `unwraps` makes a wrapper
    message the scalar that it holds. Raises `UnknownSchema` for a message that contains itself.
    """
    return _Inference(schema, sql, unwraps).message(descriptor, ())


class _Inference:
    def __init__(self, schema: ProtoSchema, sql: bool, unwraps: bool) -> None:
        self._schema, self._sql, self._unwraps = schema, sql, unwraps
        self._budget = FieldBudget()

    def message(self, descriptor: Any, around: tuple[str, ...]) -> Schema | None:
        if descriptor.full_name in around or len(around) > _DEEPEST:
            raise UnknownSchema(f"message {descriptor.full_name} of schema {self._schema.id} contains itself")
        self._budget.take(len(descriptor.fields))
        within = (*around, descriptor.full_name)
        oneofs = real_oneofs(descriptor) if self._sql else {}
        members = {field.name for fields in oneofs.values() for field in fields}
        fields = [self._struct(name, inside, within) for name, inside in oneofs.items()]
        plain = [field for field in descriptor.fields if field.name not in members]
        fields += [self._field(field, within) for field in plain]
        known = [field for field in fields if field is not None]
        return Schema.struct(known) if known else None

    def _struct(self, name: str, inside: list[Any], around: tuple[str, ...]) -> Field | None:
        fields = [field for field in (self._field(field, around) for field in inside) if field is not None]
        return Field(name, Schema.struct(fields)) if fields else None

    def _field(self, field: Any, around: tuple[str, ...]) -> Field | None:
        if is_map(field):
            key, value = map_types(field)
            inner = self._single(value, around)
            of_key = _SCALARS.get(key.type, pa.string())
            # The keys of a map in Protobuf are text in SQL.
            held = pa.types.is_string(of_key) or (pa.types.is_integer(of_key) and not self._sql)
            if inner is None or not held:
                return None
            return Field(field.name, Schema.map_of(Schema.scalar(of_key), inner))
        inner = self._single(field, around)
        if inner is None:
            return None
        return Field(field.name, Schema.list_of(inner) if field.is_repeated else inner)

    def _single(self, field: Any, around: tuple[str, ...]) -> Schema | None:
        if field.type != _Proto.TYPE_MESSAGE:
            arrow = _SCALARS.get(field.type)
            arrow = pa.float64() if self._sql and arrow == pa.float32() else arrow
            return None if arrow is None else Schema.scalar(arrow)
        name = field.message_type.full_name
        if name == "confluent.type.Decimal":
            return Schema.scalar(self._decimal(field))
        if name in KNOWN:
            return Schema.scalar(KNOWN[name])
        if name in WRAPPERS and self._unwraps:
            return self._single(field.message_type.fields[0], around)
        return self.message(field.message_type, around)

    def _decimal(self, field: Any) -> pa.DataType:
        found = self._schema.parameters.get((field.containing_type.full_name, field.name), {})
        try:
            precision, scale = int(found.get("precision", MOST_DIGITS)), int(found.get("scale", 0))
        except ValueError:
            precision, scale = MOST_DIGITS, 0
        valid = 0 < precision <= MOST_DIGITS and 0 <= scale <= precision
        return pa.decimal128(precision, scale) if valid else KNOWN["confluent.type.Decimal"]


def is_map(field: Any) -> bool:
    return bool(field.type == _Proto.TYPE_MESSAGE and field.message_type.GetOptions().map_entry)


def map_types(field: Any) -> tuple[Any, Any]:
    """Return the fields of key and value of a map."""
    entry = field.message_type.fields_by_name
    return entry["key"], entry["value"]


def real_oneofs(descriptor: Any) -> dict[str, list[Any]]:
    """Return the fields of each oneof that is written as such, by the name that ksqlDB gives its column."""
    found: dict[str, list[Any]] = {}
    for index, oneof in enumerate(descriptor.oneofs):
        if not (len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}"):
            found[f"{oneof.name}_{index}"] = list(oneof.fields)
    return found


Reader = Callable[[Any], Any]


def message_reader(descriptor: Any, target: Schema | None, *, fold: bool, depth: int = 0) -> Reader:
    """Return a function that reads a message as a dict: the columns of a struct, or all fields without one."""
    if depth > _DEEPEST:
        raise UnknownSchema(f"message {descriptor.full_name} contains itself")
    parts: list[tuple[str, Callable[[Any], bool] | None, Reader]] = []
    for field in descriptor.fields:
        column = None if target is None else field_named(target, field.name, fold)
        if target is not None and column is None:
            continue
        inner = None if column is None else column.schema
        parts.append((field.name if column is None else column.name, *_field_reader(field, inner, fold, depth)))
    for name, fields in (real_oneofs(descriptor) if target is not None else {}).items():
        column = field_named(target, name, fold) if target is not None else None
        if column is not None and column.schema.kind == "struct":
            parts.append((column.name, None, _oneof_reader(fields, column.schema, fold, depth)))

    def read(message: Any) -> dict[str, Any]:
        return {name: read_one(message) for name, there, read_one in parts if there is None or there(message)}

    return read


def _oneof_reader(fields: list[Any], target: Schema, fold: bool, depth: int) -> Reader:
    readers: dict[str, tuple[str, Reader]] = {}
    for field in fields:
        column = field_named(target, field.name, fold)
        if column is not None:
            readers[field.name] = column.name, _field_reader(field, column.schema, fold, depth)[1]
    oneof = fields[0].containing_oneof.name

    def read(message: Any) -> dict[str, Any] | None:
        found = readers.get(message.WhichOneof(oneof) or "")
        return None if found is None else {found[0]: found[1](message)}

    return read


def _field_reader(
    field: Any, target: Schema | None, fold: bool, depth: int
) -> tuple[Callable[[Any], bool] | None, Reader]:
    """Return whether a field is there, and its value."""
    name = field.name
    if is_map(field):
        read = _value_reader(map_types(field)[1], target and target.item, fold, depth)
        return None, lambda message: {key: read(item) for key, item in getattr(message, name).items()}
    read_one = _value_reader(field, target.item if field.is_repeated and target is not None else target, fold, depth)
    if field.is_repeated:
        return None, lambda message: [read_one(item) for item in getattr(message, name)]
    there = (lambda message: message.HasField(name)) if field.has_presence else None
    return there, lambda message: read_one(getattr(message, name))


def _value_reader(field: Any, target: Schema | None, fold: bool, depth: int) -> Reader:
    if field.type == _Proto.TYPE_ENUM:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda number: names.get(number, str(number))
    if field.type != _Proto.TYPE_MESSAGE:
        return lambda value: value
    name = field.message_type.full_name
    if name in WRAPPERS and (target is None or target.kind != "struct"):
        return lambda message: message.value
    if name in _READ_KNOWN and (target is None or target.kind == "scalar"):
        return _READ_KNOWN[name]
    if target is None:
        return _lazy_reader(field.message_type, fold)
    if target.kind != "struct":
        raise UnknownSchema(f'field "{field.name}" is a message, and {target} as a column')
    return message_reader(field.message_type, target, fold=fold, depth=depth + 1)


def _lazy_reader(descriptor: Any, fold: bool) -> Reader:
    """Return a reader of all fields, made when there is such a message: types may contain themselves."""
    made: list[Reader] = []

    def read(message: Any) -> Any:
        if not made:
            made.append(message_reader(descriptor, None, fold=fold))
        return made[0](message)

    return read


def _instant(message: Any) -> dt.datetime:
    try:
        return _EPOCH + dt.timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
    except OverflowError as error:
        raise MisfitError(f"{message.seconds} seconds since 1970 are outside the years 1 to 9999") from error


def _date(message: Any) -> dt.date:
    try:
        return dt.date(message.year, message.month, message.day)
    except (ValueError, OverflowError) as error:
        raise MisfitError(f"{message.year}-{message.month}-{message.day} is not a date") from error


def _time(message: Any) -> dt.time:
    try:
        return dt.time(message.hours, message.minutes, message.seconds, message.nanos // 1000)
    except (ValueError, OverflowError) as error:
        raise MisfitError(f"{message.hours}:{message.minutes}:{message.seconds} is not a time of day") from error


def _decimal(message: Any) -> Decimal:
    if len(message.value) > 32 or abs(message.scale) > 10 * MOST_DIGITS:
        raise MisfitError("a decimal has too many digits")
    # By text, because arithmetic would round to the precision of this thread.
    return Decimal(f"{int.from_bytes(message.value, 'big', signed=True)}E{-message.scale}")


_READ_KNOWN: dict[str, Reader] = {
    "google.protobuf.Timestamp": _instant,
    "google.type.Date": _date,
    "google.type.TimeOfDay": _time,
    "confluent.type.Decimal": _decimal,
}

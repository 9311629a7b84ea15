"""Protobuf with the message of the declared columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa
from google.protobuf.message import DecodeError

from potok.errors import SchemaError
from potok.records.conversion.binary_rules import COUNTED, unscaled_bytes
from potok.records.conversion.convert import MisfitError
from potok.records.conversion.fit import fit
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.formats.protobuf_schema import NULLS, known_message, message_class
from potok.records.rows import column_of, rows_of
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Field, Schema

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)

_Filler: TypeAlias = Callable[[Any, Any], None]
"""Fills a message of an object."""


@lru_cache(maxsize=64)
def struct_writer(arrow: pa.DataType, nulls: str = "optional") -> _Filler:
    """Return a function that fills a message from a row; it omits null fields, and raises `MisfitError` for a null
    where none is allowed.
    """
    schema = declared_schema(arrow)
    assert schema is not None
    parts = [
        (f"f{number}", field.name, _field_writer(field.schema, field.name, nulls))
        for number, field in enumerate(schema.fields, 1)
    ]

    def write(message: Any, row: Any) -> None:
        for attribute, name, write_one in parts:
            if row[name] is not None:
                write_one(message, attribute, row[name])

    return write


def _field_writer(schema: Schema, name: str, nulls: str) -> Callable[[Any, str, Any], None]:
    fill = _filler(schema.item or schema, nulls)
    if schema.kind == "list":
        return lambda message, attribute, items: _write_list(getattr(message, attribute), items, fill, name)
    if schema.kind == "map":
        return lambda message, attribute, items: _write_map(getattr(message, attribute), items, fill, name)
    if fill is None and nulls != "wrapper":
        return setattr
    fill = fill or _fill_wrapper

    def write(message: Any, attribute: str, obj: Any) -> None:
        part = getattr(message, attribute)
        part.SetInParent()
        fill(part, obj)

    return write


def _write_list(made: Any, items: list[Any], fill: _Filler | None, name: str) -> None:
    for item in items:
        if item is None:
            raise MisfitError(f'field "{name}": Protobuf has no null in a list')
        if fill is None:
            made.append(item)
        else:
            fill(made.add(), item)


def _write_map(made: Any, items: dict[Any, Any], fill: _Filler | None, name: str) -> None:
    for key, item in items.items():
        if item is None:
            raise MisfitError(f'field "{name}": Protobuf has no null in a map')
        if fill is None:
            made[key] = item
        else:
            fill(made[key], item)


def _filler(schema: Schema, nulls: str) -> _Filler | None:
    """Return a function that fills a message, or None for scalars."""
    if schema.kind == "struct":
        return struct_writer(schema.arrow, nulls)
    known = known_message(schema.arrow)
    if known == "Decimal":
        return _decimals(schema)
    return None if known is None else _FILLERS[known]


def _fill_wrapper(message: Any, obj: Any) -> None:
    message.f1 = obj


def _fill_timestamp(message: Any, at: dt.datetime) -> None:
    # Round down, also before 1970.
    ms = (at.replace(tzinfo=dt.UTC) - _EPOCH) // _MILLISECOND
    message.f1, message.f2 = ms // _MS, ms % _MS * _NANOS


def _fill_date(message: Any, day: dt.date) -> None:
    message.f1, message.f2, message.f3 = day.year, day.month, day.day


def _fill_time(message: Any, at: dt.time) -> None:
    message.f1, message.f2, message.f3, message.f4 = at.hour, at.minute, at.second, at.microsecond * 1000


def _decimals(schema: Schema) -> _Filler:
    precision, scale = schema.arrow.precision, schema.arrow.scale

    def fill(message: Any, number: Any) -> None:
        message.f1, message.f2, message.f3 = unscaled_bytes(number), precision, scale

    return fill


_FILLERS: dict[str, _Filler] = {"Timestamp": _fill_timestamp, "Date": _fill_date, "TimeOfDay": _fill_time}


_HEADER = 5
_DAY = dt.date(1970, 1, 1)
_MS, _NANOS = 1000, 1_000_000


@dataclass(frozen=True, slots=True)
class ProtobufFormat:
    """One message per value; an array or map that is not in the bytes is empty.

    `nulls` says how a null scalar is distinguished from the default of its type: see `NULLS`.

    A header of Confluent's serializers is skipped, not written. No message starts with its zero byte. A type
    other than a struct is the only field of a message.
    """

    nulls: str = "optional"
    name: str = "protobuf"

    def __post_init__(self) -> None:
        if self.nulls not in NULLS:
            hint = f"write one of {', '.join(NULLS)}"
            raise SchemaError(f'format "protobuf" cannot have nulls={self.nulls}', hint=hint)

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        whole = _needed(schema)
        struct = _as_struct(whole)
        selected = struct.select(columns) if whole.kind == "struct" else struct
        message = message_class(struct.arrow, self.nulls)
        read = _struct_reader(struct.arrow, self.nulls, frozenset(selected.names))
        errors: dict[int, str] = {}
        objects: list[Any] = []
        for row, data in enumerate(binary_column(values).to_pylist()):
            try:
                objects.append(None if data is None else read(message.FromString(_body(data))))
            except (DecodeError, MisfitError) as error:
                objects.append(None)
                reason = "not valid Protobuf of the declared columns"
                errors[row] = str(error) if isinstance(error, MisfitError) else reason
        fitted = fit(objects, selected, COUNTED)
        column = fitted.column if whole.kind == "struct" else fitted.column.field(0)
        return Decoded(column, {**fitted.errors, **errors})

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        whole = _needed(schema)
        if isinstance(column, list):
            fitted = column_of(column, whole)
            encoded = self.encode(fitted.column, schema)
            return Encoded(encoded.values, {**encoded.errors, **fitted.errors})
        struct = _as_struct(whole)
        message, write = message_class(struct.arrow, self.nulls), struct_writer(struct.arrow, self.nulls)
        errors: dict[int, str] = {}
        values: list[bytes | None] = []
        for row, obj in enumerate(rows_of(column)):
            try:
                values.append(
                    None if obj is None else _bytes(message, write, obj if struct is whole else {"VALUE": obj})
                )
            except MisfitError as misfit:
                values.append(None)
                errors[row] = str(misfit)
        return Encoded(pa.array(values, pa.binary()), errors)


def _bytes(message: Any, write: Callable[[Any, Any], None], obj: Any) -> bytes:
    made = message()
    write(made, obj)
    data: bytes = made.SerializeToString(deterministic=True)
    return data


def _needed(schema: Schema | None) -> Schema:
    if schema is None:
        raise SchemaError(
            "Protobuf needs declared columns: its bytes contain no field names", hint="declare the columns"
        )
    return schema


def _as_struct(schema: Schema) -> Schema:
    return schema if schema.kind == "struct" else Schema.struct([Field("VALUE", schema)])


def _body(data: bytes) -> bytes:
    """Return the message after a header: a zero byte, four bytes of an id, and the path to the message's type."""
    if data[:1] != b"\0":
        return data
    counts: list[int] = []
    position, shift, number = _HEADER, 0, 0
    while position < len(data) and (not counts or len(counts) <= counts[0]):
        byte = data[position]
        number |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        if byte < 0x80:
            counts.append((number >> 1) ^ -(number & 1))
            shift = number = 0
    if not counts or len(counts) <= counts[0]:
        raise MisfitError("a header of Confluent's serializers is not complete")
    return data[position:]


@lru_cache(maxsize=64)
def _struct_reader(
    arrow: pa.DataType, nulls: str, wanted: frozenset[str] | None = None
) -> Callable[[Any], dict[str, Any]]:
    schema = declared_schema(arrow)
    assert schema is not None
    parts = [
        (field.name, f"f{number}", field.schema, _field_reader(field.schema, nulls))
        for number, field in enumerate(schema.fields, 1)
        if wanted is None or field.name in wanted
    ]

    def read(message: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, attribute, inner, read_one in parts:
            if inner.kind == "list":
                found[name] = [read_one(item) for item in getattr(message, attribute)]
            elif inner.kind == "map":
                found[name] = {key: read_one(item) for key, item in getattr(message, attribute).items()}
            elif (nulls == "default" and _is_plain(inner)) or message.HasField(attribute):
                found[name] = read_one(getattr(message, attribute))
        return found

    return read


def _is_plain(schema: Schema) -> bool:
    """Whether a column is a scalar in Protobuf, not a message."""
    return schema.kind == "scalar" and known_message(schema.arrow) is None


def _field_reader(schema: Schema, nulls: str) -> Callable[[Any], Any]:
    if nulls == "wrapper" and _is_plain(schema):
        return lambda message: message.f1
    return _reader(schema.item or schema, nulls)


def _reader(schema: Schema, nulls: str) -> Callable[[Any], Any]:
    if schema.kind == "struct":
        return _struct_reader(schema.arrow, nulls)
    known = known_message(schema.arrow)
    if known == "Timestamp":
        return lambda message: message.f1 * _MS + message.f2 // _NANOS
    if known == "TimeOfDay":
        return lambda message: ((message.f1 * 60 + message.f2) * 60 + message.f3) * _MS + message.f4 // _NANOS
    if known == "Date":
        return _days
    if known == "Decimal":
        return _unscaled(schema.arrow.scale)
    return lambda item: item


def _days(message: Any) -> int:
    try:
        return (dt.date(message.f1, message.f2, message.f3) - _DAY).days
    except (ValueError, OverflowError) as error:
        raise MisfitError(f"{message.f1}-{message.f2}-{message.f3} is not a date") from error


def _unscaled(scale: int) -> Callable[[Any], bytes]:
    def read(message: Any) -> bytes:
        if message.f3 != scale:
            raise MisfitError(f"a decimal has {message.f3} digits behind its point, not the {scale} that were declared")
        data: bytes = message.f1
        return data

    return read

"""Convert columns as Debezium writes them to columns of the declared types, and values back."""

from __future__ import annotations

import datetime as dt
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import SchemaError
from potok.records.conversion.convert import Reading
from potok.records.conversion.fit import Fitted, fit
from potok.records.schemas.schema import Schema

_PER_UNIT = {"millis": 1_000, "micros": 1, "nanos": 1}
_EPOCH = dt.datetime(1970, 1, 1)
_DAY_ONE = dt.date(1970, 1, 1)
_MOST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Encodings:
    """The options of the connector that decide how values look."""

    decimals: str = "precise"
    """`precise` or `string`: both are text."""
    time: str = "micros"
    """The unit of instants: `millis`, `micros` or `nanos`."""
    names: str = "exact"
    """`lower` for columns of SQL: a name in upper case is written in lower case."""

    def __post_init__(self) -> None:
        for name, allowed in (
            ("decimals", ("precise", "string", "double")),
            ("time", tuple(_PER_UNIT)),
            ("names", ("exact", "lower")),
        ):
            if getattr(self, name) not in allowed:
                hint = f"use one of {', '.join(allowed)}"
                raise SchemaError(f'format "debezium" cannot have {name}={getattr(self, name)}', hint=hint)

    def name(self, column: str) -> str:
        """Return the name of a column in the events."""
        return column.lower() if self.names == "lower" and column.isupper() else column


def converted(column: pa.Array, wire: Schema, schema: Schema, encodings: Encodings) -> Fitted:
    """Return a column in its declared type."""
    if schema.kind == "struct" and wire.kind == "struct":
        return _struct(column, wire, schema, encodings)
    if schema.kind == "list":
        return _list(column, wire, schema, encodings)
    arrow = schema.arrow
    if column.type == arrow:
        return Fitted(column)
    if pa.types.is_float32(arrow):
        return Fitted(column.cast(arrow))
    if pa.types.is_binary(arrow):
        return _each(column, schema, lambda text: b64decode(text, validate=True))
    if pa.types.is_decimal(arrow):
        return _decimals(column, schema, encodings)
    if pa.types.is_string(column.type):
        return _from_text(column, schema)
    return _from_numbers(column, schema, encodings)


def _struct(column: pa.Array, wire: Schema, schema: Schema, encodings: Encodings) -> Fitted:
    children = []
    errors: dict[int, str] = {}
    valid = column.is_valid()
    for index, (given, field) in enumerate(zip(wire.fields, schema.fields, strict=True)):
        made = converted(column.field(index), given.schema, field.schema, encodings)
        errors |= {row: f"{field.name}: {text}" for row, text in made.errors.items()}
        if field.required and made.column.null_count:
            missing = pc.and_(made.column.is_null(), valid).to_numpy(zero_copy_only=False)
            errors |= {row: f"{field.name} is missing" for row in np.flatnonzero(missing).tolist() if row not in errors}
        children.append(made.column)
    mask = pc.invert(valid) if column.null_count else None
    fields = list(schema.arrow)
    if not children:
        return Fitted(pa.array([{} if each else None for each in valid.to_pylist()], schema.arrow), errors)
    return Fitted(pa.StructArray.from_arrays(children, fields=fields, mask=mask), errors)


def _list(column: pa.Array, wire: Schema, schema: Schema, encodings: Encodings) -> Fitted:
    assert wire.item is not None
    assert schema.item is not None
    if column.type == schema.arrow:
        return Fitted(column)
    rows = pc.list_parent_indices(column).to_pylist()
    made = converted(pc.list_flatten(column), wire.item, schema.item, encodings)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    mask = pc.is_null(column) if column.null_count else None
    values = pa.ListArray.from_arrays(offsets, made.column, type=schema.arrow, mask=mask)
    return Fitted(values, {rows[index]: text for index, text in made.errors.items()})


def _each(column: pa.Array, schema: Schema, convert: Callable[[Any], Any]) -> Fitted:
    """Convert value by value."""
    found: list[Any] = []
    errors: dict[int, str] = {}
    for row, value in enumerate(column.to_pylist()):
        try:
            found.append(None if value is None else convert(value))
        except (ValueError, ArithmeticError) as error:
            found.append(None)
            errors[row] = f"cannot be read as {schema}: {str(value)[:100]!r} ({error})"
    made = fit(found, schema, Reading.PYTHON)
    return Fitted(made.column, {**made.errors, **errors})


def _decimals(column: pa.Array, schema: Schema, encodings: Encodings) -> Fitted:
    scale = schema.arrow.scale
    if pa.types.is_floating(column.type):
        return _each(column, schema, lambda number: Decimal(repr(number)).quantize(Decimal(1).scaleb(-scale)))
    if pa.types.is_struct(column.type):
        return _each(column, schema, lambda each: _unscaled(each["value"], each["scale"]))
    if encodings.decimals == "string":
        return _each(column, schema, Decimal)
    return _each(column, schema, lambda text: _unscaled(text, scale))


def _unscaled(text: str, scale: int) -> Decimal:
    data = b64decode(text, validate=True)
    if not 0 < len(data) <= _MOST_BYTES:
        raise ValueError("not the digits of a number")
    return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale)


def _from_numbers(column: pa.Array, schema: Schema, encodings: Encodings) -> Fitted:
    arrow = schema.arrow
    try:
        if pa.types.is_date(arrow):
            return Fitted(column.cast(pa.int32()).view(arrow))
        if pa.types.is_time(arrow):
            return Fitted(pc.divide(column, 1_000).cast(pa.int32()).view(arrow))
        micros = pc.multiply_checked(column, _PER_UNIT[encodings.time])
        micros = pc.divide(micros, 1_000) if encodings.time == "nanos" else micros
        return Fitted(micros.view(pa.timestamp("us")).cast(arrow) if arrow.tz is None else micros.view(arrow))
    except pa.ArrowInvalid:
        # Some number is out of range: find it.
        return _each(column, schema, lambda number: _instant(number, arrow, encodings))


def _instant(number: int, arrow: pa.DataType, encodings: Encodings) -> Any:
    if pa.types.is_date(arrow):
        return _DAY_ONE + dt.timedelta(days=number)
    if pa.types.is_time(arrow):
        return (_EPOCH + dt.timedelta(microseconds=number)).time()
    micros = number // 1_000 if encodings.time == "nanos" else number * _PER_UNIT[encodings.time]
    return _zoned(_EPOCH + dt.timedelta(microseconds=micros), arrow)


def _from_text(column: pa.Array, schema: Schema) -> Fitted:
    """Read ISO text; an instant without a zone is one of UTC."""
    arrow = schema.arrow
    try:
        if pa.types.is_date(arrow):
            return Fitted(column.cast(arrow))
        if pa.types.is_timestamp(arrow):
            plain = pc.replace_substring_regex(column, r"(Z|\+00:00)$", "")
            return Fitted(plain.cast(pa.timestamp("us")).view(arrow))
    except pa.ArrowInvalid:
        pass
    return _each(column, schema, lambda text: _of_text(text, arrow))


def _of_text(text: str, arrow: pa.DataType) -> Any:
    if pa.types.is_date(arrow):
        return dt.date.fromisoformat(text)
    if pa.types.is_time(arrow):
        return dt.time.fromisoformat(text).replace(tzinfo=None)
    found = dt.datetime.fromisoformat(text)
    if found.tzinfo is not None:
        found = found.astimezone(dt.UTC).replace(tzinfo=None)
    return _zoned(found, arrow)


def _zoned(found: dt.datetime, arrow: pa.DataType) -> dt.datetime:
    return found if arrow.tz is None else found.replace(tzinfo=dt.UTC)


def written(value: Any, schema: Schema, encodings: Encodings) -> Any:
    """Return a value as JSON has it, encoded as Debezium does."""
    if value is None:
        return None
    if schema.kind == "struct":
        return {
            encodings.name(field.name): written(value.get(field.name), field.schema, encodings)
            for field in schema.fields
        }
    if schema.kind == "list":
        assert schema.item is not None
        return [written(item, schema.item, encodings) for item in value]
    arrow = schema.arrow
    if pa.types.is_binary(arrow):
        return b64encode(value).decode()
    if pa.types.is_decimal(arrow):
        return _written_decimal(value, arrow.scale, encodings)
    if pa.types.is_date(arrow):
        return (value - _DAY_ONE).days
    if pa.types.is_time(arrow):
        return _micros(dt.datetime.combine(_DAY_ONE, value) - _EPOCH)
    if pa.types.is_timestamp(arrow):
        micros = _micros(value.replace(tzinfo=None) - _EPOCH)
        return micros * 1_000 if encodings.time == "nanos" else micros // _PER_UNIT[encodings.time]
    return value


def _written_decimal(value: Decimal, scale: int, encodings: Encodings) -> Any:
    if encodings.decimals != "precise":
        return str(value) if encodings.decimals == "string" else float(value)
    number = int(value.scaleb(scale))
    bits = number.bit_length() if number >= 0 else (number + 1).bit_length()
    return b64encode(number.to_bytes(bits // 8 + 1, "big", signed=True)).decode()


def _micros(span: dt.timedelta) -> int:
    return span // dt.timedelta(microseconds=1)

"""From the bytes of a topic to Python objects, by the declared type or without one."""

from __future__ import annotations

import json
import math
from collections.abc import Container
from typing import Any

import pyarrow as pa

from potok.records.schemas.schema import Field, Schema
from potok.topology.nodes import Serde


class Undecodable(Exception):
    """These bytes are not what the source declares."""


class Row(dict[str, Any]):
    """A struct value: fields by index and by attribute."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return row(self[name])


def row(value: Any) -> Any:
    return Row(value) if type(value) is dict else value


def decode(data: bytes | None, serde: Serde, fields: Container[str] | None = None) -> Any:
    """The object that the bytes stand for.

    Args:
        data: A key or a value.
        serde: How the source declares it.
        fields: The fields of a struct that are checked; all of them if left out. What is not checked is null if wrong.
    """
    if data is None:
        return None
    if serde.format == "raw":
        return data
    text = _utf8(data)
    if serde.format == "text":
        return text
    if serde.format != "json":
        raise NotImplementedError(f"the oracle does not read the format {serde.format}")
    parsed = _json(text)
    if serde.schema is None or parsed is None:
        return parsed
    if serde.schema.kind == "struct" and fields is not None:
        return fit_struct(parsed, serde.schema, fields)
    return _fit(parsed, serde.schema)


def _utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Undecodable(str(error)) from error


def _json(text: str) -> Any:
    def no_constant(name: str) -> Any:
        raise Undecodable(f"{name} is not JSON")

    try:
        parsed = json.loads(text, parse_constant=no_constant)
        json.dumps(parsed, ensure_ascii=False).encode()  # half of a surrogate pair is not text
    except ValueError as error:
        raise Undecodable(str(error)) from error
    return parsed


def _fit(value: Any, schema: Schema) -> Any:
    """The value as the declared type has it. No conversions but one: a whole number does for a float."""
    if value is None:
        return None
    if schema.kind == "struct":
        return fit_struct(value, schema)
    if schema.kind == "list":
        _check(isinstance(value, list), value, schema)
        return [_fit_item(item, schema) for item in value]
    if schema.kind == "map":
        _check(isinstance(value, dict), value, schema)
        return {key: _fit_item(item, schema) for key, item in value.items()}
    return _fit_scalar(value, schema)


def fit_struct(value: Any, schema: Schema, checked: Container[str] | None = None) -> Any:
    _check(isinstance(value, dict), value, schema)
    fitted = {}
    for field in schema.fields:
        try:
            fitted[field.name] = _fit_field(value, field)
        except Undecodable:
            if checked is None or field.name in checked:
                raise
            fitted[field.name] = None
    return fitted


def _fit_field(value: dict[str, Any], field: Field) -> Any:
    given = value.get(field.name)
    absent = field.name not in value or (given is None and not field.nullable)
    if absent and field.required:
        raise Undecodable(f"field {field.name} is required")
    return field.default if absent and field.has_default else _fit(given, field.schema)


def _fit_item(value: Any, schema: Schema) -> Any:
    assert schema.item is not None
    if value is None and not schema.item_nullable:
        raise Undecodable("an item is null")
    return _fit(value, schema.item)


def _fit_scalar(value: Any, schema: Schema) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if pa.types.is_string(schema.arrow):
        _check(isinstance(value, str), value, schema)
        return value
    if pa.types.is_boolean(schema.arrow):
        _check(isinstance(value, bool), value, schema)
        return value
    if pa.types.is_integer(schema.arrow):
        half = 1 << (schema.arrow.bit_width - 1)
        _check(is_number and isinstance(value, int) and -half <= value < half, value, schema)
        return value
    if pa.types.is_floating(schema.arrow):
        _check(is_number and math.isfinite(value), value, schema)
        return float(value)
    raise NotImplementedError(f"the oracle does not read {schema.arrow}")


def _check(fits: bool, value: Any, schema: Schema) -> None:
    if not fits:
        raise Undecodable(f"{value!r} is not {schema.arrow}")

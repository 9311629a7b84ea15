"""Read JSON of Kafka Connect: with or without a schema around each value, and with Debezium's encodings of types.

Instants are numbers of microseconds, or ISO text; dates are days, times microseconds since midnight, bytes base64.
Decimal numbers are base64 of their digits (`precise`), text (`string`) or numbers (`double`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.records.conversion.fit import Fitted, without_rows
from potok.records.formats.debezium.encodings import Encodings, converted
from potok.records.formats.json.json_format import decode_typed, with_rows
from potok.records.schemas.schema import Field, Schema

_SNIFFED = 32
_PAYLOAD, _SCHEMA = "payload", "schema"
_WITH_SCHEMA = r'^\s*\{\s*"schema"\s*:'


@dataclass(frozen=True, slots=True)
class ConnectJson:
    """Decodes values to columns of a declared type."""

    encodings: Encodings

    def decode(self, values: pa.Array, schema: Schema) -> Fitted:
        """Return the values as a column; a row that does not fit is an error of that row."""
        wrapped = has_schema(values)
        if not wrapped.any():
            return self._decode(values, schema)
        if wrapped.all():
            return self._payloads(values, schema)
        parts = [np.flatnonzero(~wrapped), np.flatnonzero(wrapped)]
        plain = self._decode(values.take(pa.array(parts[0])), schema)
        column = pa.nulls(len(values), schema.arrow)
        found = with_rows(column, parts[0].tolist(), plain)
        rest = self._payloads(values.take(pa.array(parts[1])), schema)
        whole = with_rows(found.column, parts[1].tolist(), rest)
        return Fitted(whole.column, {**found.errors, **whole.errors})

    def _payloads(self, values: pa.Array, schema: Schema) -> Fitted:
        inside = self._decode(values, Schema.struct([Field(_PAYLOAD, schema)]))
        payload = inside.column.field(0)
        if inside.column.null_count:
            payload = pc.if_else(inside.column.is_valid(), payload, pa.scalar(None, payload.type))
        return Fitted(payload, inside.errors)

    def _decode(self, values: pa.Array, schema: Schema) -> Fitted:
        found = self._decode_as(values, schema, _sample(values))
        again = [row for row in found.errors if values[row].is_valid]
        if not again or len(values) == 1:
            return found
        # The encoding may differ between records, for example after an option of the connector was changed.
        column = found.column
        errors: dict[int, str] = {}
        for row in again:
            alone = self._decode_as(values.slice(row, 1), schema, _sample(values.slice(row, 1)))
            fixed = with_rows(column, [row], alone)
            column = fixed.column
            errors |= fixed.errors
        return Fitted(column, errors)

    def _decode_as(self, values: pa.Array, schema: Schema, sample: list[Any]) -> Fitted:
        wire = _wire(schema, sample, self.encodings)
        read = decode_typed(values, wire)
        made = converted(read.column, wire, schema, self.encodings)
        errors = {**made.errors, **read.errors}
        return Fitted(without_rows(made.column, errors), errors)


def has_schema(values: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which values are a schema and a payload."""
    found = pc.fill_null(pc.match_substring_regex(values, _WITH_SCHEMA), False)
    result: np.ndarray[Any, np.dtype[np.bool_]] = found.to_numpy(zero_copy_only=False)
    return result


def loads(value: bytes) -> Any:
    """Return one value as plain objects, without its schema."""
    found = orjson.loads(value)
    if isinstance(found, dict) and found.keys() == {_SCHEMA, _PAYLOAD}:
        return found[_PAYLOAD]
    return found


def _sample(values: pa.Array) -> list[Any]:
    """Return the first values as plain objects, to see how their types are encoded."""
    found = []
    for value in values.slice(0, _SNIFFED).to_pylist():
        try:
            found.append(None if value is None else orjson.loads(value))
        except orjson.JSONDecodeError:
            continue
    return found


def _wire(schema: Schema, sample: Sequence[Any], encodings: Encodings) -> Schema:
    """Return the type in which values are written: numbers and text for what JSON does not have."""
    arrow = schema.arrow
    if schema.kind == "struct":
        fields = []
        for field in schema.fields:
            name = encodings.name(field.name)
            inside = [each.get(name) for each in sample if isinstance(each, dict)]
            wire = _wire(field.schema, inside, encodings)
            same = wire.arrow == field.schema.arrow
            fields.append(Field(name, wire, field.nullable, field.default) if same else Field(name, wire))
        return Schema.struct(fields)
    if schema.kind == "list":
        assert schema.item is not None
        items = [item for each in sample if isinstance(each, list) for item in each]
        return Schema.list_of(_wire(schema.item, items, encodings), nullable=schema.item_nullable)
    if schema.kind == "map":
        return schema
    if pa.types.is_binary(arrow):
        return Schema.scalar(pa.string())
    if pa.types.is_float32(arrow):
        return Schema.scalar(pa.float64())
    if pa.types.is_temporal(arrow):
        return Schema.scalar(pa.string() if _first(sample, str) else pa.int64())
    if pa.types.is_decimal(arrow):
        if _first(sample, dict):
            return Schema.struct(
                [Field("scale", Schema.scalar(pa.int32())), Field("value", Schema.scalar(pa.string()))]
            )
        return Schema.scalar(pa.string() if _first(sample, str) else pa.float64())
    return schema


def _first(sample: Sequence[Any], kind: type) -> bool:
    """Whether the first value that is not null is of a type."""
    return isinstance(next((each for each in sample if each is not None), None), kind)

"""The Avro schema of declared columns."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

import pyarrow as pa

from potok.records.schemas.schema import Schema

_ILLEGAL = re.compile(r"[^A-Za-z0-9_]", re.ASCII)
_ROOT = "Record"

_PRIMITIVES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int64, "long"),
    (pa.types.is_integer, "int"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_date, {"type": "int", "logicalType": "date"}),
    (pa.types.is_time, {"type": "int", "logicalType": "time-millis"}),
)


def avro_schema(schema: Schema, name: str = _ROOT) -> Any:
    """Return the Avro schema, as a JSON object.

    Every nested type is a union with null, null first; the whole value is not, since a null value has no bytes.
    Maps with text keys are maps, others are lists of entries. Characters that Avro does not allow in names
    become underscores.
    """
    if schema.kind == "struct":
        fields: dict[str, Any] = {}
        for position, field in enumerate(schema.fields):
            legal = _legal(field.name, fields, position)
            inner = _optional(field.schema, f"{name}_{legal}")
            fields[legal] = {"name": legal, "type": inner, "default": None}
        return {"type": "record", "name": name, "fields": list(fields.values())}
    if schema.kind == "list":
        assert schema.item is not None
        return {"type": "array", "items": _optional(schema.item, name)}
    if schema.kind == "map":
        assert schema.key is not None
        assert schema.item is not None
        if pa.types.is_string(schema.key.arrow):
            return {"type": "map", "values": _optional(schema.item, name)}
        key = {"name": "key", "type": avro_schema(schema.key)}
        value = {"name": "value", "type": _optional(schema.item, f"{name}_value")}
        return {"type": "array", "items": {"type": "record", "name": name, "fields": [key, value]}}
    return _scalar(schema.arrow)


def _optional(schema: Schema, name: str) -> list[Any]:
    return ["null", avro_schema(schema, name)]


def _scalar(arrow: pa.DataType) -> Any:
    if pa.types.is_decimal(arrow):
        return {"type": "bytes", "logicalType": "decimal", "precision": arrow.precision, "scale": arrow.scale}
    if pa.types.is_timestamp(arrow):
        return {"type": "long", "logicalType": "timestamp-millis" if arrow.tz else "local-timestamp-millis"}
    return next(found for matches, found in _PRIMITIVES if matches(arrow))


def _legal(name: str, taken: Container[str], position: int) -> str:
    legal = _ILLEGAL.sub("_", name)
    legal = f"_{legal}" if not legal or legal[0].isdigit() else legal
    return f"{legal}_{position}" if legal in taken else legal

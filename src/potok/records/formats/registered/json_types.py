"""The columns of a JSON Schema, and the JSON Schema of columns, with the names that Kafka Connect gives their types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from potok.records.schema_registry.errors import FieldBudget, UnknownSchema
from potok.records.schemas.column_types import TIME, TIMESTAMP
from potok.records.schemas.schema import Field, Schema

_DEEPEST = 50
_CONNECT = "org.apache.kafka.connect.data."
_BY_CONNECT = {
    "int8": pa.int32(),
    "int16": pa.int32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "bytes": pa.binary(),
    "boolean": pa.bool_(),
    "string": pa.string(),
}
_BY_TYPE = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
_BY_TITLE = {f"{_CONNECT}Date": pa.date32(), f"{_CONNECT}Time": TIME, f"{_CONNECT}Timestamp": TIMESTAMP}
_BY_FORMAT = {"date-time": TIMESTAMP, "date": pa.date32(), "time": TIME}


def columns_of_json(document: Any, others: dict[str, Any], *, sql: bool) -> Schema | None:
    """Return the type of a JSON Schema as a column; None for what no column holds. `others` are the schemas to which
    it refers, by name.

    With `sql`, types are those that ksqlDB infers; otherwise text with a format of time is a time.
    """
    return _Inference(document, others, sql).schema(document, document, 0)


class _Inference:
    def __init__(self, document: Any, others: dict[str, Any], sql: bool) -> None:
        self._document, self._others, self._sql = document, others, sql
        self._budget = FieldBudget()

    def schema(self, found: Any, root: Any, depth: int) -> Schema | None:
        if depth > _DEEPEST:
            raise UnknownSchema(f"a JSON Schema is nested more than {_DEEPEST} deep, or contains itself")
        if not isinstance(found, dict):
            return None
        self._budget.take(1)
        if "$ref" in found:
            target, within = self._referred(str(found["$ref"]), root)
            return self.schema(target, within, depth + 1)
        for word in ("oneOf", "anyOf"):
            if word in found:
                branches = [branch for branch in found[word] if not _is_null(branch)]
                return self.schema(branches[0], root, depth + 1) if len(branches) == 1 else None
        kind = _kind(found)
        if kind == "object":
            return self._object(found, root, depth)
        if "allOf" in found and kind is None:
            return self._all_of(found["allOf"], root, depth)
        if kind == "array":
            item = self.schema(found.get("items"), root, depth + 1)
            return None if item is None else Schema.list_of(item)
        arrow = self._scalar(found, kind)
        return None if arrow is None else Schema.scalar(arrow)

    def _all_of(self, parts: Any, root: Any, depth: int) -> Schema | None:
        found = [self.schema(part, root, depth + 1) for part in parts]
        fields = [field for part in found if part is not None for field in part.fields]
        return Schema.struct(fields) if fields else None

    def _object(self, found: Any, root: Any, depth: int) -> Schema | None:
        properties = found.get("properties")
        if not properties:
            value = self.schema(found.get("additionalProperties"), root, depth + 1)
            return None if value is None else Schema.map_of(Schema.scalar(pa.string()), value)
        ordered = sorted(properties.items(), key=lambda item: _index(item[1]))
        typed = [(name, self.schema(part, root, depth + 1)) for name, part in ordered]
        fields = [Field(name, schema) for name, schema in typed if schema is not None]
        return Schema.struct(fields) if fields else None

    def _scalar(self, found: Any, kind: str | None) -> pa.DataType | None:
        title = found.get("title")
        if title == f"{_CONNECT}Decimal":
            return _decimal(found.get("connect.parameters") or {})
        if title in _BY_TITLE and kind == "integer" and (self._sql or _BY_TITLE[title] == TIMESTAMP):
            return _BY_TITLE[title]
        arrow = _BY_CONNECT.get(str(found.get("connect.type")), _BY_TYPE.get(kind or ""))
        if kind is None and "enum" in found and all(isinstance(value, str) for value in found["enum"]):
            arrow = pa.string()
        if arrow == pa.string() and not self._sql:
            arrow = _BY_FORMAT.get(str(found.get("format")), arrow)
        return pa.float64() if self._sql and arrow == pa.float32() else arrow

    def _referred(self, reference: str, root: Any) -> tuple[Any, Any]:
        name, _, pointer = reference.partition("#")
        document = root
        if name:
            if name not in self._others:
                raise UnknownSchema(f'a JSON Schema refers to "{name}", to which the registry has no reference')
            document = self._others[name]
        found = document
        for part in pointer.strip("/").split("/") if pointer.strip("/") else ():
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or part not in found:
                raise UnknownSchema(f'a JSON Schema refers to "{reference}", which it does not have')
            found = found[part]
        return found, document


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _kind(found: Any) -> str | None:
    """Return the one type of a schema besides null; None if there are several, or none."""
    kind = found.get("type")
    kinds = [one for one in (kind if isinstance(kind, list) else [kind]) if one not in (None, "null")]
    if not kinds and "properties" in found:
        return "object"
    return str(kinds[0]) if len(kinds) == 1 else None


def _index(schema: Any) -> int:
    found = schema.get("connect.index") if isinstance(schema, dict) else None
    return found if isinstance(found, int) else 1 << 30


def _decimal(parameters: Any) -> pa.DataType | None:
    try:
        precision = int(parameters.get("connect.decimal.precision", 38))
        return pa.decimal128(precision, int(parameters.get("scale", 0)))
    except (ValueError, TypeError, AttributeError, pa.ArrowInvalid):
        return None


def json_schema_of(schema: Schema, *, sql: bool, title: str = "") -> dict[str, Any]:
    """Return the JSON Schema of what is written for a type: with `sql`, times are numbers, as in ksqlDB."""
    found = {"$schema": "http://json-schema.org/draft-07/schema#", **_written(schema, sql)}
    return {**found, "title": title} if title else found


def _written(schema: Schema, sql: bool) -> dict[str, Any]:
    if schema.kind == "struct":
        properties = {
            field.name: {"connect.index": index, "oneOf": [{"type": "null"}, _written(field.schema, sql)]}
            for index, field in enumerate(schema.fields)
        }
        return {"type": "object", "properties": properties}
    if schema.kind == "list":
        assert schema.item is not None
        return {"type": "array", "items": _optional(schema.item, sql)}
    if schema.kind == "map":
        assert schema.item is not None
        return {"type": "object", "connect.type": "map", "additionalProperties": _optional(schema.item, sql)}
    return _written_scalar(schema.arrow, sql)


def _optional(schema: Schema, sql: bool) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, _written(schema, sql)]}


def _written_scalar(arrow: pa.DataType, sql: bool) -> dict[str, Any]:
    if pa.types.is_decimal(arrow):
        parameters = {"scale": str(arrow.scale), "connect.decimal.precision": str(arrow.precision)}
        # JSON holds a decimal as text, so that no reader rounds it; that of SQL as a number.
        type_ = "number" if sql else "string"
        connect = {"connect.version": 1, "connect.type": "bytes", "connect.parameters": parameters}
        return {"type": type_, "title": f"{_CONNECT}Decimal", **connect}
    for name, matches, kind in (
        ("Date", pa.types.is_date, "int32"),
        ("Time", pa.types.is_time, "int32"),
        ("Timestamp", pa.types.is_timestamp, "int64"),
    ):
        if matches(arrow):
            if sql:
                return {"type": "integer", "title": f"{_CONNECT}{name}", "connect.version": 1, "connect.type": kind}
            formats = {"Date": "date", "Time": "time", "Timestamp": "date-time"}
            # An instant without a zone is not a date-time.
            return (
                {"type": "string", "format": formats[name]} if name != "Timestamp" or arrow.tz else {"type": "string"}
            )
    if pa.types.is_integer(arrow):
        return {"type": "integer", "connect.type": "int64" if pa.types.is_int64(arrow) else "int32"}
    if pa.types.is_floating(arrow):
        return {"type": "number", "connect.type": "float32" if pa.types.is_float32(arrow) else "float64"}
    if pa.types.is_binary(arrow):
        return {"type": "string", "connect.type": "bytes"}
    return {"type": "boolean" if pa.types.is_boolean(arrow) else "string"}

"""The columns of an Avro schema, and the shape in which its values are read into columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from potok.records.conversion.lenient import folds
from potok.records.schema_registry.errors import FieldBudget
from potok.records.schemas.column_types import LOCAL_TIMESTAMP, TIME, TIMESTAMP
from potok.records.schemas.schema import Field, Schema

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": TIME,
    "time-micros": TIME,
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
    "local-timestamp-millis": LOCAL_TIMESTAMP,
    "local-timestamp-micros": LOCAL_TIMESTAMP,
}
_OF_CONNECT = ("date", "time-millis", "timestamp-millis", "decimal")
"""What ksqlDB's converter knows; it reads other logical types as plain numbers."""

MOST_DIGITS = 38


def columns_of_avro(avro: Any, *, sql: bool) -> Schema | None:
    """Return the type of a complete Avro schema as a column; None for what no column holds.

    Fields that no column holds are left out. With `sql`, types are those that ksqlDB infers: FLOAT is DOUBLE, and times
    in microseconds are BIGINT.
    """
    return _Inference(sql).schema(avro)


class _Inference:
    def __init__(self, sql: bool) -> None:
        self._sql = sql
        self._named: dict[str, Any] = {}
        self._budget = FieldBudget()

    def schema(self, avro: Any) -> Schema | None:
        if isinstance(avro, list):
            return self._union([branch for branch in avro if branch != "null"])
        if isinstance(avro, str):
            return self.schema(self._named[avro]) if avro in self._named else self._scalar(avro, {})
        kind = avro["type"]
        if "name" in avro:
            self._named[avro["name"]] = avro
        if kind in ("record", "error"):
            return self._record([(field["name"], field["type"]) for field in avro["fields"]])
        if kind == "array":
            item = self.schema(avro["items"])
            return None if item is None else Schema.list_of(item)
        if kind == "map":
            value = self.schema(avro["values"])
            return None if value is None else Schema.map_of(Schema.scalar(pa.string()), value)
        return self.schema(kind) if isinstance(kind, dict | list) else self._scalar(kind, avro)

    def _record(self, parts: list[tuple[str, Any]]) -> Schema | None:
        self._budget.take(len(parts))
        typed = [(name, self.schema(part)) for name, part in parts]
        fields = [Field(name, schema) for name, schema in typed if schema is not None]
        return Schema.struct(fields) if fields else None

    def _union(self, branches: list[Any]) -> Schema | None:
        if len(branches) == 1:
            return self.schema(branches[0])
        return self._record([(branch_name(branch), branch) for branch in branches]) if branches else None

    def _scalar(self, kind: str, avro: Any) -> Schema | None:
        logical = avro.get("logicalType")
        known = _OF_CONNECT if self._sql else (*_LOGICAL, "decimal")
        arrow = _PRIMITIVES.get(kind)
        if logical == "decimal" and kind in ("bytes", "fixed"):
            precision, scale = avro.get("precision", 0), avro.get("scale", 0)
            if 0 < precision <= MOST_DIGITS and 0 <= scale <= precision:
                arrow = pa.decimal128(precision, scale)
        elif logical in known and kind in ("int", "long"):
            arrow = _LOGICAL[logical]
        if self._sql and arrow == pa.float32():
            arrow = pa.float64()
        return None if arrow is None else Schema.scalar(arrow)


def branch_name(branch: Any) -> str:
    """Return the name of a union's branch as a column: of a named type without its namespace."""
    if isinstance(branch, str):
        return branch.rpartition(".")[2]
    kind = branch["type"]
    return str(branch["name"]).rpartition(".")[2] if "name" in branch else branch_name(kind)


def shaped(avro: Any, target: Schema, *, fold: bool) -> Any:
    """Return an equivalent schema for reading into columns of the `target` type.

    A branch of a union that becomes a struct is a record of one field, which takes the same bytes and is read as a
    struct. A logical type is dropped where a column takes the plain number.
    """
    if isinstance(avro, list):
        several = [branch for branch in avro if branch != "null"]
        if len(several) < 2 or target.kind != "struct":
            return [branch if branch == "null" else shaped(branch, target, fold=fold) for branch in avro]
        return [branch if branch == "null" else _wrapped(branch, target, fold) for branch in avro]
    if not isinstance(avro, dict):
        return avro
    kind = avro["type"]
    if kind in ("record", "error") and target.kind == "struct":
        fields = [_field(field, target, fold) for field in avro["fields"]]
        return {**avro, "fields": fields}
    if kind == "array" and target.item is not None:
        return {**avro, "items": shaped(avro["items"], target.item, fold=fold)}
    if kind == "map" and target.item is not None:
        return {**avro, "values": shaped(avro["values"], target.item, fold=fold)}
    if isinstance(kind, dict | list):
        return {**avro, "type": shaped(kind, target, fold=fold)}
    if "logicalType" in avro and not _is_logical(avro["logicalType"], target):
        return {name: part for name, part in avro.items() if name not in ("logicalType", "precision", "scale")}
    return avro


def _field(field: Any, target: Schema, fold: bool) -> Any:
    column = field_named(target, field["name"], fold)
    return field if column is None else {**field, "type": shaped(field["type"], column.schema, fold=fold)}


def _wrapped(branch: Any, target: Schema, fold: bool) -> Any:
    name = branch_name(branch)
    column = field_named(target, name, fold)
    inner = branch if column is None else shaped(branch, column.schema, fold=fold)
    return {"type": "record", "name": f"potok.Branch_{name}", "fields": [{"name": name, "type": inner}]}


def field_named(target: Schema, name: str, fold: bool) -> Field | None:
    """Return the column of a field: the one of its name, or with `fold` of its name in another case."""
    exact = next((field for field in target.fields if field.name == name), None)
    if exact is not None or not fold:
        return exact
    return next((field for field in target.fields if folds(field.name) and field.name == name.upper()), None)


def _is_logical(logical: str, target: Schema) -> bool:
    arrow = target.arrow
    return pa.types.is_decimal(arrow) if logical == "decimal" else logical in _LOGICAL and pa.types.is_temporal(arrow)

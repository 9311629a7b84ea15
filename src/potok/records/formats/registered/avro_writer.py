"""Write rows with an Avro schema that was not made from their columns."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import fastavro
import orjson
import pyarrow as pa

from potok.errors import SchemaError
from potok.records.conversion.binary_rules import counter
from potok.records.formats.registered.avro_types import branch_name, field_named
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema

_MISFITS = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)


def is_avro_misfit(error: Exception) -> bool:
    """Whether an error says that an object does not fit a schema."""
    return isinstance(error, _MISFITS)


@lru_cache(maxsize=256)
def avro_writer(avro: bytes, schema_id: int, arrow: pa.DataType | None, fold: bool) -> Callable[[Any], bytes]:
    """Return a function that encodes rows of a type, or plain objects, with a complete schema.

    Raises `SchemaError` if the schema has no field for a column, or a field without a default and without a column.
    """
    loaded = orjson.loads(avro)
    schema = None if arrow is None else declared_schema(arrow)
    make: Callable[[Any], Any] = _unchanged
    if schema is not None:
        make = _Shape(schema_id, fold).maker(loaded, schema, "")
    parsed = fastavro.parse_schema(loaded)

    def write(row: Any) -> bytes:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, make(row))
        return stream.getvalue()

    return write


class _Shape:
    """Converts rows of columns to objects of a schema."""

    def __init__(self, schema_id: int, fold: bool) -> None:
        self._id, self._fold = schema_id, fold
        self._named: dict[str, Any] = {}

    def maker(self, avro: Any, schema: Schema, path: str) -> Callable[[Any], Any]:
        if isinstance(avro, str) and avro in self._named:
            avro = self._named[avro]
        if isinstance(avro, list):
            return self._union([branch for branch in avro if branch != "null"], schema, path)
        kind = avro["type"] if isinstance(avro, dict) else avro
        if isinstance(kind, dict | list):
            return self.maker(kind, schema, path)
        if kind in ("record", "error"):
            self._named[avro["name"]] = avro
            return self._record(avro, schema, path)
        if isinstance(avro, dict) and "name" in avro:
            self._named[avro["name"]] = avro
        if kind in ("array", "map") and schema.kind == ("list" if kind == "array" else "map"):
            assert schema.item is not None
            inner = _maybe(self.maker(avro["items" if kind == "array" else "values"], schema.item, path))
            if kind == "array":
                return lambda items: [inner(item) for item in items]
            return lambda items: {key: inner(item) for key, item in items.items()}
        if schema.kind != "scalar" or kind in ("array", "map"):
            raise self._misfit(path, schema, kind)
        logical = isinstance(avro, dict) and "logicalType" in avro
        return _unchanged if logical else counter(schema.arrow) or _unchanged

    def _record(self, avro: Any, schema: Schema, path: str) -> Callable[[Any], Any]:
        if schema.kind != "struct":
            raise self._misfit(path, schema, "record")
        parts: list[tuple[str, str, Callable[[Any], Any]]] = []
        for field in avro["fields"]:
            name = field["name"]
            column = field_named(schema, name, self._fold)
            if column is not None:
                inner = f"{path}.{name}" if path else name
                parts.append((name, column.name, _maybe(self.maker(field["type"], column.schema, inner))))
            elif "default" not in field and not _is_nullable(field["type"]):
                hint = "add the column, or a default to the schema"
                raise SchemaError(f'no column for the field "{name}" of schema {self._id}', hint=hint)
        written = {column for _, column, _ in parts}
        for name in schema.names:
            if name not in written:
                hint = "leave the column out, or add the field to the schema"
                raise SchemaError(f'schema {self._id} has no field for the column "{name}"', hint=hint)
        return lambda row: {name: make(row[column]) for name, column, make in parts}

    def _union(self, branches: list[Any], schema: Schema, path: str) -> Callable[[Any], Any]:
        if len(branches) == 1:
            return self.maker(branches[0], schema, path)
        if schema.kind != "struct":
            return _unchanged
        parts = []
        for branch in branches:
            column = field_named(schema, branch_name(branch), self._fold)
            if column is not None:
                parts.append((column.name, self.maker(branch, column.schema, f"{path}.{column.name}")))
        return lambda row: next((make(row[name]) for name, make in parts if row[name] is not None), None)

    def _misfit(self, path: str, schema: Schema, kind: str) -> SchemaError:
        where = f'field "{path}"' if path else "the value"
        return SchemaError(
            f"{where} is {kind} in schema {self._id}, and {schema} as a column", hint="select a column of that type"
        )


def _is_nullable(avro: Any) -> bool:
    return avro == "null" or (isinstance(avro, list) and "null" in avro)


def _unchanged(value: Any) -> Any:
    return value


def _maybe(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else make(value)

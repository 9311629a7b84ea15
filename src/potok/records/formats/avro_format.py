"""Binary Avro with the schema of the declared columns."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa

from potok.errors import SchemaError
from potok.records.conversion.binary_rules import COUNTED, counter
from potok.records.conversion.convert import MisfitError
from potok.records.conversion.fit import fit
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.rows import column_of, rows_of
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema

_HEADER = 5
_INVALID = "not valid Avro of the declared columns"
_BROKEN = (EOFError, IndexError, ValueError, OverflowError, MemoryError)


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """One record per value, without its schema; a header of Confluent's serializers is skipped, not written."""

    name: str = "avro"

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        codec = _codec(_needed(schema))
        errors: dict[int, str] = {}
        objects: list[Any] = []
        for row, data in enumerate(binary_column(values).to_pylist()):
            try:
                objects.append(None if data is None else codec.read(data))
            except MisfitError as misfit:
                objects.append(None)
                errors[row] = str(misfit)
        fitted = fit(objects, codec.schema.select(columns), COUNTED)
        return Decoded(fitted.column, {**fitted.errors, **errors})

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        codec = _codec(_needed(schema))
        if isinstance(column, list):
            fitted = column_of(column, codec.schema)
            return Encoded(self.encode(fitted.column, schema).values, fitted.errors)
        return Encoded(pa.array([None if row is None else codec.write(row) for row in rows_of(column)], pa.binary()))


class _Codec:
    """Encodes objects and decodes bytes, for one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        whole = avro_schema(schema)
        # Without logical types, numbers and bytes are unchanged; fastavro would convert them to datetimes.
        self._avro = fastavro.parse_schema(without_logical_types(whole))
        self._written = _writer(schema)
        self._read = _reader(schema)
        self._one_way = not _holds_items(schema)

    def write(self, row: Any) -> bytes:
        return self._bytes(self._written(row))

    def read(self, data: bytes) -> Any:
        """Decode bytes; if they could also be a header and a value, prefer the reading that we would write."""
        try:
            found = self._parse(data)
            if self._bytes(found) == data:
                return self._read(found)
            reason = MisfitError(f"{_INVALID}: this is not an encoded value")
        except MisfitError as misfit:
            found, reason = None, misfit
        if data[:1] == b"\0" and len(data) > _HEADER:
            try:
                return self._read(self._parse(data[_HEADER:]))
            except MisfitError:
                pass  # no header: the first error is the reason
        # fastavro accepts some bytes that no writer produces, such as negative indexes in a union. But lists and
        # maps may be split into blocks in several ways.
        if found is None or self._one_way:
            raise reason
        return self._read(found)

    def _parse(self, data: bytes) -> Any:
        stream = io.BytesIO(data)
        try:
            found = fastavro.schemaless_reader(stream, self._avro, None)
        except _BROKEN as error:
            reason = "the bytes are truncated" if isinstance(error, EOFError) else str(error)
            raise MisfitError(f"{_INVALID}: {reason}") from error
        if stream.tell() != len(data):
            raise MisfitError(f"{_INVALID}: {len(data) - stream.tell()} bytes are left over")
        return found

    def _bytes(self, obj: Any) -> bytes:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, self._avro, obj)
        return stream.getvalue()


@lru_cache(maxsize=64)
def codec_of(arrow: pa.DataType) -> _Codec:
    """Return what encodes and decodes values of a type."""
    schema = declared_schema(arrow)
    assert schema is not None
    return _Codec(schema)


def _codec(schema: Schema) -> _Codec:
    return codec_of(schema.arrow)


def _needed(schema: Schema | None) -> Schema:
    if schema is None:
        raise SchemaError("Avro needs declared columns: its bytes contain no field names", hint="declare the columns")
    return schema


def without_logical_types(avro: Any) -> Any:
    """Return a schema that fastavro reads as numbers and bytes."""
    if isinstance(avro, dict):
        kept = {
            name: without_logical_types(part)
            for name, part in avro.items()
            if name not in ("logicalType", "precision", "scale")
        }
        return kept["type"] if kept.keys() == {"type"} else kept
    return [without_logical_types(part) for part in avro] if isinstance(avro, list) else avro


def _holds_items(schema: Schema) -> bool:
    return schema.item is not None or any(_holds_items(field.schema) for field in schema.fields)


def _writer(schema: Schema) -> Callable[[Any], Any]:
    """Return a function that converts an object of the schema for fastavro, with names in Avro's form."""
    if schema.kind == "struct":
        avro_names = [field["name"] for field in avro_schema(schema)["fields"]]
        parts = [
            (name, field.name, _maybe(_writer(field.schema)))
            for name, field in zip(avro_names, schema.fields, strict=True)
        ]
        return lambda row: {name: write(row[own]) for name, own, write in parts}
    if schema.kind == "list":
        assert schema.item is not None
        write_item = _maybe(_writer(schema.item))
        return lambda row: [write_item(item) for item in row]
    if schema.kind == "map":
        assert schema.key is not None
        assert schema.item is not None
        write_value = _maybe(_writer(schema.item))
        if pa.types.is_string(schema.key.arrow):
            return lambda row: {key: write_value(item) for key, item in row.items()}
        return lambda row: [{"key": key, "value": write_value(item)} for key, item in row.items()]
    return counter(schema.arrow) or (lambda row: row)


def _reader(schema: Schema) -> Callable[[Any], Any]:
    """Return the inverse for names and map entries; the rules for counted objects do the rest."""
    if schema.kind == "struct":
        avro_names = [field["name"] for field in avro_schema(schema)["fields"]]
        parts = [
            (name, field.name, _maybe(_reader(field.schema)))
            for name, field in zip(avro_names, schema.fields, strict=True)
        ]
        return lambda row: {own: read(row[name]) for name, own, read in parts}
    if schema.kind == "list":
        assert schema.item is not None
        read_item = _maybe(_reader(schema.item))
        return lambda row: [read_item(item) for item in row]
    if schema.kind == "map":
        assert schema.key is not None
        assert schema.item is not None
        read_value = _maybe(_reader(schema.item))
        if pa.types.is_string(schema.key.arrow):
            return lambda row: {key: read_value(item) for key, item in row.items()}
        return lambda row: {entry["key"]: read_value(entry["value"]) for entry in row}
    return lambda row: row


def _maybe(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda obj: None if obj is None else change(obj)


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

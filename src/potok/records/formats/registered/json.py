"""JSON with a JSON Schema in a registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
import pyarrow as pa

from potok.errors import SchemaError
from potok.records.formats.format import Decoded, Encoded, Format
from potok.records.formats.json.json_format import JsonFormat
from potok.records.formats.lenient.json_format import LenientJsonFormat
from potok.records.formats.registered.avro_types import field_named
from potok.records.formats.registered.json_types import columns_of_json, json_schema_of
from potok.records.formats.registered.registered_format import RegisteredFormat
from potok.records.rows import column_of
from potok.records.schema_registry.client import JSON, Registered
from potok.records.schema_registry.errors import UnknownSchema
from potok.records.schema_registry.wire import framed, prefixed
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema


@dataclass(frozen=True, slots=True)
class RegisteredJsonFormat(RegisteredFormat):
    """JSON behind the id of its schema; values are read by the declared columns."""

    name: str = "json_sr"

    @property
    def _json(self) -> Format:
        return LenientJsonFormat() if self.folds else JsonFormat()

    def decode_group(
        self, written: Registered, bodies: pa.Array, schema: Schema | None, columns: Sequence[str] | None
    ) -> Decoded:
        _loaded(written)
        return self._json.decode(bodies, schema, columns)

    def infer(self, written: Registered, *, sql: bool) -> Schema | None:
        others = {name: _loaded(other) for name, other in self.client.referenced(written)}
        try:
            return columns_of_json(_loaded(written), others, sql=sql)
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            if isinstance(error, UnknownSchema):
                raise
            raise UnknownSchema(f"schema {written.shown} of the registry is not a JSON Schema: {error}") from error

    def encode_column(self, column: pa.Array, schema: Schema) -> Encoded:
        given = self._checked(schema)
        encoded = self._json.encode(column, schema)
        return Encoded(prefixed(framed(given.id), encoded.values), encoded.errors)

    def encode_dynamic(self, column: list[Any]) -> Encoded:
        given = self.writer_schema()
        inferred = None if given is None else self.infer(given, sql=False)
        if given is None or inferred is None:
            self.needed(None)
        assert given is not None
        assert inferred is not None
        fitted = column_of(column, inferred)
        encoded = self._json.encode(fitted.column, inferred)
        return Encoded(prefixed(framed(given.id), encoded.values), {**encoded.errors, **fitted.errors})

    def announce(self, schema: Schema) -> None:
        self._checked(schema)

    def _checked(self, schema: Schema) -> Registered:
        """Return the schema that values of a type are written with. Raises `SchemaError` if it does not hold them."""
        given = self.writer_schema()
        if given is None:
            return self.registered(JSON, _text_of(schema.arrow, self.folds, self.full_name))
        document = _loaded(given)
        if schema.kind == "struct" and isinstance(document, dict) and isinstance(document.get("properties"), dict):
            _check_names(document, schema, given.id, fold=self.folds)
        return given


def _check_names(document: Any, schema: Schema, schema_id: int, *, fold: bool) -> None:
    properties = document["properties"]
    written = {column.name for name in properties if (column := field_named(schema, name, fold)) is not None}
    for name in schema.names:
        if name not in written and document.get("additionalProperties") is False:
            hint = "leave the column out, or add the property to the schema"
            raise SchemaError(f'schema {schema_id} has no property for the column "{name}"', hint=hint)
    for name in document.get("required") or ():
        if field_named(schema, str(name), fold) is None:
            hint = "add the column, or make the property optional"
            raise SchemaError(f'no column for the required property "{name}" of schema {schema_id}', hint=hint)


@lru_cache(maxsize=512)
def _loaded(schema: Registered) -> Any:
    if schema.kind != JSON:
        raise UnknownSchema(f"schema {schema.shown} of the registry is one of {schema.kind}, not a JSON Schema")
    try:
        return orjson.loads(schema.text)
    except ValueError as error:
        raise UnknownSchema(f"schema {schema.shown} of the registry is not a JSON Schema: {error}") from error


@lru_cache(maxsize=256)
def _text_of(arrow: pa.DataType, sql: bool, title: str) -> str:
    schema = declared_schema(arrow)
    assert schema is not None
    return orjson.dumps(json_schema_of(schema, sql=sql, title=title)).decode()

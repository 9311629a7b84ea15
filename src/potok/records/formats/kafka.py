"""One column as Kafka's own serializers write it, selected by its type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.errors import SchemaError
from potok.records.formats.format import Column, Decoded, Encoded, Format
from potok.records.formats.registry import format_named
from potok.records.formats.unwrapped import UnwrappedFormat
from potok.records.schemas.schema import Schema

_FORMATS = {
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float64(): "float64",
    pa.string(): "text",
    pa.binary(): "raw",
}


@dataclass(frozen=True, slots=True)
class KafkaFormat:
    """INT, BIGINT and DOUBLE in a fixed number of bytes, text as UTF-8, bytes unchanged; a struct has one
    field of these.
    """

    name: str = "kafka"

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        return self._of(schema).decode(values, schema, columns)

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        return self._of(schema).encode(column, schema)

    def _of(self, schema: Schema | None) -> Format:
        if schema is None:
            raise SchemaError(
                'format "kafka" needs a declared type: the bytes do not contain it', hint="declare one column"
            )
        if schema.kind == "struct" and not schema.fields:
            return format_named("none")
        only = schema.fields[0].schema if len(schema.fields) == 1 else schema
        if len(schema.fields) < 2 and only.arrow not in _FORMATS:
            raise SchemaError(
                f'format "kafka" cannot hold "{only}"', hint="use INT, BIGINT, DOUBLE, VARCHAR or BYTES, or JSON"
            )
        return UnwrappedFormat(format_named(_FORMATS.get(only.arrow, "raw")), self.name)

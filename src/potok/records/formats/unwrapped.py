"""Unwrapped values: a struct with one field, written as the field itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import SchemaError
from potok.records.conversion.fit import without_rows
from potok.records.formats.format import Column, Decoded, Encoded, Format, binary_column
from potok.records.rows import column_of
from potok.records.schemas.schema import Schema


@dataclass(frozen=True, slots=True)
class UnwrappedFormat:
    """The only field of a struct, in the format `inner`; a type other than a struct is passed to `inner` unchanged.

    No bytes mean no value, while the encoding of null is a value whose field is null. Not every format can write the
    latter, so it is written as no bytes too.
    """

    inner: Format
    name: str

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        if schema is None or schema.kind != "struct":
            return self.inner.decode(values, schema)
        values = binary_column(values)
        field = only_field(schema, self.name)
        if columns is not None and not columns:
            rows: list[dict[str, object] | None] = [None if empty else {} for empty in values.is_null().to_pylist()]
            return Decoded(pa.array(rows, schema.select([]).arrow))
        decoded = self.inner.decode(values, field)
        column = pa.StructArray.from_arrays([decoded.column], fields=list(schema.arrow), mask=values.is_null())
        return Decoded(without_rows(column, decoded.errors), decoded.errors)

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        if schema is None or schema.kind != "struct":
            return self.inner.encode(column, schema)
        field = only_field(schema, self.name)
        if isinstance(column, list):
            fitted = column_of(column, schema)
            encoded = self.encode(fitted.column, schema)
            return Encoded(encoded.values, {**encoded.errors, **fitted.errors})
        return self.inner.encode(pc.struct_field(column, indices=[0]), field)


def only_field(schema: Schema, format_name: str) -> Schema:
    """Return the type of a struct's only field."""
    if len(schema.fields) != 1:
        raise SchemaError(
            f'format "{format_name}" holds one field without a name, not "{schema}"',
            hint="declare one field, or use a format with names: JSON, AVRO or PROTOBUF",
        )
    return schema.fields[0].schema

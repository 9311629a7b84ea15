"""JSON as ksqlDB reads and writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.records.formats.format import Column, Decoded, Encoded, binary_column, format_named
from potok.records.formats.json_encode import encode_typed
from potok.records.formats.sql_json_decode import decode_typed
from potok.records.formats.sql_json_encode import sql_scalars
from potok.records.rows import column_of
from potok.records.schema import Schema


@dataclass(frozen=True, slots=True)
class SqlJsonFormat:
    """One JSON text a value, read by the rules of `potok.records.sql_rules`; a type is declared, or it is plain JSON.

    With a type that is no struct, the text is the bare value.
    """

    name: str = "sql_json"

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        if schema is None:
            return format_named("json").decode(values, None)
        fitted = decode_typed(binary_column(values), schema.select(columns))
        return Decoded(fitted.column, fitted.errors)

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        if not isinstance(column, list):
            return Encoded(encode_typed(column, sql_scalars))
        if schema is None:
            return format_named("json").encode(column, None)
        fitted = column_of(column, schema)
        return Encoded(encode_typed(fitted.column, sql_scalars), fitted.errors)

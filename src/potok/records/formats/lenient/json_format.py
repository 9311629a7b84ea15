"""The `sql_json` format: JSON with lenient conversion, compatible with ksqlDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.formats.json.encode import encode_typed
from potok.records.formats.lenient.json_decode import decode_typed
from potok.records.formats.lenient.json_encode import lenient_scalars
from potok.records.formats.registry import format_named
from potok.records.rows import column_of
from potok.records.schemas.schema import Schema


@dataclass(frozen=True, slots=True)
class LenientJsonFormat:
    """One JSON document per value, converted by `LENIENT`. Without a declared type it is plain JSON.

    A type other than a struct is an unwrapped value. Field names are read in any case. `names` is a comma-separated
    list of names as they are to be written; with it, names that are not in the list are written in lower case.
    """

    name: str = "sql_json"
    names: str = ""

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        if schema is None:
            return format_named("json").decode(values, None)
        fitted = decode_typed(binary_column(values), schema.select(columns))
        return Decoded(fitted.column, fitted.errors)

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        if not isinstance(column, list):
            return Encoded(encode_typed(self._spelled(column), lenient_scalars))
        if schema is None:
            return format_named("json").encode(column, None)
        fitted = column_of(column, schema)
        return Encoded(encode_typed(self._spelled(fitted.column), lenient_scalars), fitted.errors)

    def _spelled(self, column: pa.Array) -> pa.Array:
        if not self.names or not pa.types.is_nested(column.type):
            return column
        spellings = {name.upper(): name for name in self.names.split(",")}
        # A view only changes the type; no data is copied.
        return column.view(_renamed(column.type, spellings))


def _renamed(type_: pa.DataType, spellings: Mapping[str, str]) -> pa.DataType:
    if pa.types.is_struct(type_):
        names = [(spellings.get(field.name, field.name.lower()), field.type) for field in type_]
        return pa.struct([pa.field(name, _renamed(inner, spellings)) for name, inner in names])
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, _renamed(type_.item_type, spellings))
    return pa.list_(_renamed(type_.value_type, spellings)) if pa.types.is_list(type_) else type_

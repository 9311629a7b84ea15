"""The `sql_json` format: JSON with lenient conversion, compatible with ksqlDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.records.conversion.convert import ExactNumber, loads_exact
from potok.records.conversion.fit import Fitted, fit
from potok.records.conversion.lenient import LENIENT
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.formats.json.encode import base64_of, decimals, doubles, encode_typed, quoted
from potok.records.formats.json.json_format import decode_in_blocks, with_rows
from potok.records.formats.lenient.json_block import read_block, readable_in_blocks
from potok.records.formats.registry import format_named
from potok.records.garbage_collection import collector_paused
from potok.records.rows import column_of
from potok.records.schemas.schema import Schema, holds_decimal


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


_SPELLED: Final = msgspec.json.Decoder(float_hook=ExactNumber)
_TOO_LARGE: Final = "number is infinity"


def decode_typed(values: pa.Array, schema: Schema) -> Fitted:
    """Decode the values to a column of the type of `schema`."""
    if not readable_in_blocks(schema):
        return decode_rows(values, schema)
    return decode_in_blocks(values, schema, read_block, decode_rows)


def decode_rows(values: pa.Array, schema: Schema) -> Fitted:
    """Decode row by row: with orjson first, then rows that failed again with the exact text of their numbers."""
    loads = loads_exact if holds_decimal(schema) else orjson.loads
    first = _fit(values, schema, loads)
    again = [row for row in first.errors if values[row].as_py()]
    if not again:
        return first
    second = _fit(values.take(pa.array(again, pa.int64())), schema, _loads_spelled)
    kept = {row: reason for row, reason in first.errors.items() if not values[row].as_py()}
    redone = with_rows(first.column, again, second)
    return Fitted(redone.column, {**kept, **redone.errors})


def _loads_spelled(text: bytes) -> Any:
    """Parse with the text of each number, also numbers beyond a double, which orjson rejects and Jackson accepts."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if _TOO_LARGE not in error.msg:
            raise
    return _SPELLED.decode(text)


def _fit(values: pa.Array, schema: Schema, loads: Any) -> Fitted:
    errors: dict[int, str] = {}
    objects: list[Any] = []
    with collector_paused():
        for row, text in enumerate(values.to_pylist()):
            try:
                objects.append(None if text is None else loads(text))
            except (ValueError, RecursionError) as error:
                objects.append(None)
                errors[row] = f"not valid JSON: {error}" if text else "the value is empty"
        fitted = fit(objects, schema, LENIENT)
    return Fitted(fitted.column, {**fitted.errors, **errors})


def lenient_scalars(column: pa.Array) -> pa.Array:
    """Encode scalars as JSON text: timestamps and times in milliseconds, dates in days, decimals with all their digits,
    bytes in base64. A double that is not finite is a string, because JSON has no number for it."""
    arrow = column.type
    if pa.types.is_floating(arrow):
        return _doubles(column)
    if pa.types.is_decimal(arrow):
        return decimals(column)
    if pa.types.is_binary(arrow):
        return quoted(base64_of(column))
    return counted(column).cast(pa.string())


def counted(column: pa.Array) -> pa.Array:
    """Convert timestamps and times to milliseconds and dates to days; leave other types alone."""
    arrow = column.type
    if pa.types.is_timestamp(arrow):
        # Round down, also before 1970.
        return pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms", arrow.tz)).cast(pa.int64())
    if pa.types.is_date(arrow) or pa.types.is_time(arrow):
        return column.cast(pa.int32())
    return column


def _doubles(column: pa.Array) -> pa.Array:
    texts = doubles(column)
    if texts.null_count == column.null_count:
        return texts
    numbers = column.cast(pa.float64())
    infinite = pc.if_else(pc.greater(numbers, 0), '"Infinity"', '"-Infinity"')
    return pc.coalesce(texts, pc.if_else(pc.is_nan(numbers), '"NaN"', infinite))

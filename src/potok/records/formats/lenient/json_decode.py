"""Decode JSON to typed columns with lenient conversion: in blocks where Arrow's reader agrees, else row by row."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson
import pyarrow as pa

from potok.records.conversion.convert import ExactNumber, loads_exact
from potok.records.conversion.fit import Fitted, fit
from potok.records.conversion.lenient import LENIENT
from potok.records.formats.json.decode import decode_in_blocks, with_rows
from potok.records.formats.lenient.json_block import read_block, readable_in_blocks
from potok.records.garbage_collection import collector_paused
from potok.records.schemas.schema import Schema, holds_decimal

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

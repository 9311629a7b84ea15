"""The JSON format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.formats.json.decode import decode_typed
from potok.records.formats.json.encode import encode_typed
from potok.records.formats.json.objects import dump_each, dumps
from potok.records.garbage_collection import collector_paused
from potok.records.rows import column_of
from potok.records.schemas.schema import Schema


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """One JSON text per value. Without a schema: any JSON, as plain Python objects."""

    name: str = "json"

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        values = binary_column(values)
        if schema is None:
            return _decode_dynamic(values)
        fitted = decode_typed(values, schema.select(columns))
        return Decoded(fitted.column, fitted.errors)

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        if isinstance(column, list):
            if schema is None:
                return dump_each(column, dumps, "cannot be written as JSON")
            fitted = column_of(column, schema)
            encoded = self.encode(fitted.column, schema)
            return Encoded(encoded.values, {**encoded.errors, **fitted.errors})
        return Encoded(encode_typed(column))


def _decode_dynamic(values: pa.Array) -> Decoded:
    texts = values.to_pylist()
    loads = orjson.loads
    errors: dict[int, str] = {}
    with collector_paused():
        try:
            if values.null_count == 0:
                return Decoded(list(map(loads, texts)))
        except orjson.JSONDecodeError:
            pass  # some value is bad: find which
        objects: list[Any] = [None] * len(texts)
        for row, text in enumerate(texts):
            if text is not None:
                try:
                    objects[row] = loads(text)
                except orjson.JSONDecodeError as error:
                    errors[row] = f"not valid JSON: {error}" if text else "the value is empty"
    return Decoded(objects, errors)

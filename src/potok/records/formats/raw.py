"""The format of plain bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.errors import SchemaError
from potok.records.conversion.convert import Reading
from potok.records.conversion.fit import fit
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.schemas.schema import Schema

_BYTES = Schema.scalar(pa.binary())


@dataclass(frozen=True, slots=True)
class RawFormat:
    """Values are bytes, without decoding or errors."""

    name: str = "raw"

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        values = binary_column(values)
        _check(schema)
        return Decoded(values.to_pylist() if schema is None else values)

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        _check(schema)
        if isinstance(column, list):
            fitted = fit(column, _BYTES, Reading.PYTHON)
            return Encoded(fitted.column, fitted.errors)
        if not pa.types.is_binary(column.type):
            raise SchemaError(f"raw bytes cannot be made of {column.type}", hint='use format "json" or "text"')
        return Encoded(column)


def _check(schema: Schema | None) -> None:
    if schema is not None and schema != _BYTES:
        raise SchemaError(f'format "raw" holds bytes, not "{schema}"', hint="declare the value as bytes")

"""The format without content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from potok.records.formats.format import Column, Decoded, Encoded
from potok.records.schemas.schema import Schema


@dataclass(frozen=True, slots=True)
class NoneFormat:
    """Every value is null, whatever the bytes: for keys or values that are not used."""

    name: str = "none"

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        if schema is None:
            return Decoded([None] * len(values))
        return Decoded(pa.nulls(len(values), schema.select(columns).arrow))

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        return Encoded(pa.nulls(len(column), pa.binary()))

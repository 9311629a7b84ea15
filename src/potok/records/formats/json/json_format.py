"""The JSON format.

Two implementations decode, with one result. `decode_rows` defines it: each value through orjson, each field checked.
The block reader reads thousands of values at once through Arrow's JSON reader and is used only for types that it
provably reads the same way; every doubtful row is read again by `decode_rows`, which also produces all error messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.records.conversion.convert import Reading, loads_exact
from potok.records.conversion.fit import Fitted, fit
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.formats.json.block import Block, read_block, readable_in_blocks
from potok.records.formats.json.encode import encode_typed
from potok.records.formats.json.objects import dump_each, dumps
from potok.records.garbage_collection import collector_paused
from potok.records.rows import column_of
from potok.records.schemas.schema import Schema, holds_decimal


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


# One bad value invalidates its block, so blocks are small; larger ones are only a tenth faster.
_BLOCK_ROWS = 4_096
_BLOCK_BYTES = 16 << 20


def decode_typed(values: pa.Array, schema: Schema) -> Fitted:
    """Return the values as a column of `schema`'s type."""
    if not readable_in_blocks(schema):
        return decode_rows(values, schema)
    return decode_in_blocks(values, schema, read_block, decode_rows)


def decode_in_blocks(
    values: pa.Array,
    schema: Schema,
    read: Callable[[pa.Array, Schema], Block | None],
    each: Callable[[pa.Array, Schema], Fitted],
) -> Fitted:
    """Decode by `read`, and doubtful rows by `each`."""

    def decoded(values: pa.Array) -> Fitted:
        block = read(values, schema)
        if block is None:
            return each(values, schema)
        if not block.doubtful.any():
            return Fitted(block.column)
        again = np.flatnonzero(block.doubtful).tolist()
        return with_rows(block.column, again, each(values.take(pa.array(again)), schema))

    return _joined([decoded(block) for block in _blocks(values)])


def decode_rows(values: pa.Array, schema: Schema) -> Fitted:
    """Decode one value at a time."""
    loads = loads_exact if holds_decimal(schema) else orjson.loads
    texts = values.to_pylist()
    errors: dict[int, str] = {}
    objects = []
    with collector_paused():
        for row, text in enumerate(texts):
            try:
                objects.append(None if text is None else loads(text))
            except (ValueError, RecursionError) as error:
                objects.append(None)
                errors[row] = f"not valid JSON: {error}" if text else "the value is empty"
        fitted = fit(objects, schema, Reading.JSON)
    return Fitted(fitted.column, {**fitted.errors, **errors})


def _blocks(values: pa.Array) -> Iterator[pa.Array]:
    """Yield slices of at most this many rows and, unless a single value is longer, this many bytes."""
    if len(values) <= _BLOCK_ROWS and values.nbytes <= _BLOCK_BYTES:
        yield values
        return
    ends = np.cumsum(pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    start = 0
    while start < len(values):
        before = int(ends[start - 1]) if start else 0
        fits = int(np.searchsorted(ends, before + _BLOCK_BYTES, side="right"))
        end = max(start + 1, min(start + _BLOCK_ROWS, fits))
        yield values.slice(start, end - start)
        start = end


def with_rows(column: pa.Array, rows: Sequence[int], redone: Fitted) -> Fitted:
    """Return the column with these rows replaced."""
    indices = np.arange(len(column))
    indices[rows] = len(column) + np.arange(len(rows))
    joined = pa.concat_arrays([column, redone.column]).take(pa.array(indices))
    return Fitted(joined, {rows[row]: reason for row, reason in redone.errors.items()})


def _joined(parts: list[Fitted]) -> Fitted:
    if len(parts) == 1:
        return parts[0]
    errors: dict[int, str] = {}
    start = 0
    for part in parts:
        errors.update((start + row, reason) for row, reason in part.errors.items())
        start += len(part.column)
    return Fitted(pa.concat_arrays([part.column for part in parts]), errors)

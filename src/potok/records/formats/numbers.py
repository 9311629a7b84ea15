"""Numbers as Kafka's own serializers write them: a fixed number of bytes, big-endian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import SchemaError
from potok.records.conversion.convert import Reading
from potok.records.conversion.fit import fit
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.schemas.schema import Schema


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """One number per value. The declared type may be wider than the written one, never of another kind."""

    name: str
    arrow: pa.DataType

    @property
    def _written(self) -> np.dtype[Any]:
        native: np.dtype[Any] = np.dtype(self.arrow.to_pandas_dtype())
        return native.newbyteorder(">")

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        values = binary_column(values)
        self._check(schema)
        width = self._written.itemsize
        lengths = pc.binary_length(values)
        right = pc.equal(lengths, width).fill_null(False)
        numbers = _numbers(values.filter(right), self._written)
        errors = {}
        if len(numbers) < len(values):
            keep = right.to_numpy(zero_copy_only=False)
            column = pa.array(numbers).take(pa.array(np.cumsum(keep) - 1, mask=~keep))
            wrong = pc.indices_nonzero(pc.not_equal(lengths, width)).to_pylist()
            errors = {row: f"expected {width} bytes of {self.name}, got {lengths[row]}" for row in wrong}
        else:
            column = pa.array(numbers)
        if schema is None:
            return Decoded(column.to_pylist(), errors)
        return Decoded(column.cast(schema.arrow), errors)

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        self._check(schema)
        objects = column if isinstance(column, list) else column.to_pylist()
        if isinstance(column, list) or column.type != self.arrow:
            fitted = fit(objects, Schema.scalar(self.arrow), Reading.PYTHON)
            column, errors = fitted.column, fitted.errors
        else:
            errors = {}
        return Encoded(_bytes(column, self._written), errors)

    def _check(self, schema: Schema | None) -> None:
        if schema is None:
            return
        floating = pa.types.is_floating(self.arrow)
        same_kind = pa.types.is_floating(schema.arrow) if floating else pa.types.is_integer(schema.arrow)
        if not same_kind or schema.arrow.bit_width < self.arrow.bit_width:
            raise SchemaError(
                f'format "{self.name}" cannot hold "{schema}"', hint=f"declare {'float' if floating else 'int'}"
            )


def _numbers(values: pa.Array, written: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if not len(values):
        return np.empty(0, written.newbyteorder("="))
    start = np.frombuffer(values.buffers()[1], np.int32, 1, values.offset * 4)[0]
    return np.frombuffer(values.buffers()[2], written, len(values), start).astype(written.newbyteorder("="))


def _bytes(column: pa.Array, written: np.dtype[Any]) -> pa.Array:
    numbers = column.fill_null(0).to_numpy(zero_copy_only=False).astype(written)
    offsets = np.arange(0, (len(column) + 1) * written.itemsize, written.itemsize, dtype=np.int32)
    validity = pa.array(column.is_valid().to_numpy(zero_copy_only=False)).buffers()[1] if column.null_count else None
    buffers = [validity, pa.py_buffer(offsets.tobytes()), pa.py_buffer(numbers.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(column), buffers)


INT32 = NumberFormat("int32", pa.int32())
INT64 = NumberFormat("int64", pa.int64())
FLOAT32 = NumberFormat("float32", pa.float32())
FLOAT64 = NumberFormat("float64", pa.float64())

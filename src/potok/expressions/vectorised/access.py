"""Access to columns, fields, elements and characters, and construction of structs and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.expressions.expr import Column
from potok.expressions.vectorised.vector import Data, Vector, as_array, cast, either, inherited, nulls, required, where


def column(expr: Column, columns: Mapping[str, pa.Array]) -> Vector:
    """Return a column or a field in it. Reading a field of None raises in Python, so null structs on the path are
    suspect.
    """
    vector = Vector(columns[expr.name])
    for name in expr.path:
        vector = field(vector, name)
    return vector


def field(operand: Vector, name: str) -> Vector:
    data = operand.data
    # The child array alone would show the values below a null struct.
    child = pc.struct_field(data, [name]) if data.null_count else data.field(name)
    return Vector(child, required(operand))


def element(operand: Vector, index: int) -> Vector:
    """`list[index]`; out of range is suspect."""
    data = operand.data
    offsets = data.offsets.to_numpy()
    starts, ends = offsets[:-1], offsets[1:]
    position = starts.astype(np.int64) + index if index >= 0 else ends.astype(np.int64) + index
    outside = (position < starts) | (position >= ends)
    if data.null_count:
        outside |= pc.is_null(data).to_numpy(zero_copy_only=False)
    taken = data.values.take(pa.array(position, mask=outside))
    return Vector(taken, either(operand.suspect, where(pa.array(outside))))


def entry(operand: Vector, key: str) -> Vector:
    """`map[key]`; a missing key is suspect, and so is None, which looks the same. Of equal keys, a dict has the
    last.
    """
    found = pc.map_lookup(operand.data, pa.scalar(key, operand.data.type.key_type), "last")
    return Vector(found, either(operand.suspect, nulls(found)))


def character(operand: Vector, index: int) -> Vector:
    """`string[index]`, by code point; out of range is suspect."""
    stop = None if index == -1 else index + 1
    found = pc.utf8_slice_codeunits(operand.data, index, stop)
    return Vector(found, either(required(operand), where(pc.equal(_bytes(found), 0))))


def substring(operand: Vector, start: int | None, stop: int | None) -> Vector:
    return Vector(pc.utf8_slice_codeunits(operand.data, start or 0, stop), required(operand))


def _bytes(text: Data) -> pa.Array:
    return pc.binary_length(text)


def struct(vectors: Sequence[Vector], type_: pa.DataType, rows: int) -> Vector:
    arrays = [cast(as_array(vector.data, rows), field.type) for vector, field in zip(vectors, list(type_), strict=True)]
    return Vector(pa.StructArray.from_arrays(arrays, fields=list(type_)), inherited(*vectors))


def list_of(vectors: Sequence[Vector], type_: pa.DataType, rows: int) -> Vector:
    width = len(vectors)
    arrays = [cast(as_array(vector.data, rows), type_.value_type) for vector in vectors]
    row_by_row = np.arange(width * rows).reshape(width, rows).T.ravel()
    values = pa.concat_arrays(arrays).take(pa.array(row_by_row))
    offsets = pa.array(np.arange(0, width * rows + 1, width, dtype=np.int32))
    return Vector(pa.ListArray.from_arrays(offsets, values, type=type_), inherited(*vectors))

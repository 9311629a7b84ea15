"""The wire format of Confluent's serializers: before each value, the id of its schema.

A zero byte and four bytes of an id, or a byte 1 and the sixteen of a GUID; for Protobuf, the path to the type of the
message follows. All of this is either in front of the value or in a header of the record. The two carry the same bytes,
so a header is put in front of its value, and one reader serves both.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"
ID_BYTES, GUID_BYTES = 5, 17
_LONGEST_PATH = 64
_LONGEST_VARINT = 5

SchemaId: TypeAlias = int | str
"""A number, or a GUID as text."""


@dataclass(slots=True)
class Frames:
    """The values of a column by the schemas that they name. `bodies` is what follows the ids, for all rows."""

    bodies: pa.Array
    rows_of: dict[SchemaId, npt.NDArray[np.int64]] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)


def framed(schema_id: int, path: bytes = b"") -> bytes:
    """Return what precedes a value."""
    return b"\0" + schema_id.to_bytes(4, "big") + path


def prefixed(prefix: bytes, values: pa.Array) -> pa.Array:
    """Return values behind a prefix; nulls stay."""
    return pc.binary_join_element_wise(pa.scalar(prefix, pa.binary()), values, pa.scalar(b"", pa.binary()))


def frames_of(values: pa.Array) -> Frames:
    """Read the ids of a binary column. A row that has none is an error of that row."""
    count = len(values)
    if not count:
        return Frames(values)
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + count + 1].astype(np.int64)
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    starts = offsets[:-1]
    there = values.is_valid().to_numpy(zero_copy_only=False)
    magic = np.full(count, 255, np.uint8)
    some = there & (lengths > 0)
    magic[some] = data[starts[some]]
    numbered = there & (magic == 0) & (lengths >= ID_BYTES)
    rows = np.flatnonzero(numbered)
    frames = Frames(_without_ids(values, data, offsets, rows), _grouped(rows, data, starts))
    rest = np.flatnonzero(there & ~numbered)
    if len(rest):
        _read_others(frames, values, rest.tolist())
    return frames


def _without_ids(
    values: pa.Array, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> pa.Array:
    """Return the values without the first bytes of these rows."""
    begin, end = int(offsets[0]), int(offsets[-1])
    kept = np.ones(end - begin, np.bool_)
    for position in range(ID_BYTES):
        kept[offsets[rows] - begin + position] = False
    shorter = np.zeros(len(offsets), np.int64)
    shorter[rows + 1] = ID_BYTES
    ends = (offsets - begin - np.cumsum(shorter)).astype(np.int32)
    # Built anew: the validity of a slice may begin within a byte.
    mask = pa.array(values.is_valid().to_numpy(zero_copy_only=False)).buffers()[1] if values.null_count else None
    left = pa.py_buffer(data[begin:end][kept])
    return pa.Array.from_buffers(pa.binary(), len(values), [mask, pa.py_buffer(ends), left])


def _grouped(
    rows: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]
) -> dict[SchemaId, npt.NDArray[np.int64]]:
    if not len(rows):
        return {}
    at = starts[rows]
    numbers = np.zeros(len(rows), np.int64)
    for position in range(1, ID_BYTES):
        numbers = numbers << 8 | data[at + position]
    if (numbers == numbers[0]).all():
        return {int(numbers[0]): rows}
    order = np.argsort(numbers, kind="stable")
    found, begins = np.unique(numbers[order], return_index=True)
    parts = np.split(rows[order], begins[1:])
    return {int(number): part for number, part in zip(found, parts, strict=True)}


def _read_others(frames: Frames, values: pa.Array, rows: Sequence[int]) -> None:
    """Read the rows that do not begin with the id of a schema: with a GUID, or with nothing that is known."""
    guids: dict[str, list[int]] = {}
    for row in rows:
        value = values[row].as_py()
        if value[:1] == b"\1" and len(value) >= GUID_BYTES:
            guids.setdefault(str(uuid.UUID(bytes=value[1:GUID_BYTES])), []).append(row)
        elif value[:1] in (b"\0", b"\1"):
            frames.errors[row] = "the id of the schema is cut off"
        else:
            frames.errors[row] = "not written with a schema registry: the value does not begin with the id of a schema"
    if not guids:
        return
    bodies = frames.bodies.to_pylist()
    for guid, named in guids.items():
        frames.rows_of[guid] = np.array(named, np.int64)
        for row in named:
            bodies[row] = values[row].as_py()[GUID_BYTES:]
    frames.bodies = pa.array(bodies, pa.binary())


def with_ids_of_headers(values: pa.Array, headers: pa.Array, name: str) -> pa.Array:
    """Return values with the ids in their headers in front of them. Other values stay as they are."""
    if headers.null_count == len(headers):
        return values
    flat = pc.list_flatten(headers)
    names, ids = flat.flatten()
    marked = pc.fill_null(pc.equal(names, name), False)
    if not pc.any(marked).as_py():
        return values
    rows = pc.list_parent_indices(headers).filter(marked).to_pylist()
    found = values.to_pylist()
    # Of several headers with the name, the last counts.
    for row, prefix in dict(zip(rows, ids.filter(marked).to_pylist(), strict=True)).items():
        if prefix and found[row] is not None:
            found[row] = prefix + found[row]
    return pa.array(found, pa.binary())


def by_path(bodies: Sequence[bytes]) -> Iterator[tuple[int, tuple[int, ...] | None, bytes]]:
    """Return the path to the message type and the message of each body of Protobuf, or None for a path that is not
    complete. A single zero is the path to the first message."""
    for row, body in enumerate(bodies):
        if body[:1] == b"\0":
            yield row, (0,), body[1:]
        else:
            path, end = _path(body)
            yield row, path, body[end:]


def _path(body: bytes) -> tuple[tuple[int, ...] | None, int]:
    count, position = _varint(body, 0)
    if count is None or not 0 < count <= _LONGEST_PATH:
        return None, 0
    path: list[int] = []
    for _ in range(count):
        number, position = _varint(body, position)
        if number is None or number < 0:
            return None, 0
        path.append(number)
    return tuple(path), position


def _varint(body: bytes, position: int) -> tuple[int | None, int]:
    """Return a zigzag number and the position behind it; None if it is not complete, or longer than 32 bits."""
    number = 0
    for index in range(_LONGEST_VARINT):
        if position + index >= len(body):
            return None, position
        byte = body[position + index]
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position + index + 1
    return None, position


def path_bytes(path: Sequence[int]) -> bytes:
    """Return the path to a message type as bytes."""
    if list(path) == [0]:
        return b"\0"
    return b"".join(map(_zigzag, (len(path), *path)))


def _zigzag(number: int) -> bytes:
    rest, out = number << 1 ^ number >> 63, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)

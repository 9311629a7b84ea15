"""Keys as bytes, which identify state cells and select shards.

Equal keys have equal bytes, on every machine and in every process. Numbers, booleans, dates, times and instants have
a fixed width and sort as they compare; text is its UTF-8 and bytes are themselves; everything else, and every key
without a declared type, is JSON with sorted names. A key without a type that is a list or a tuple is decoded as a
tuple, so that it can be looked up in a dict.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import SchemaError
from potok.records.conversion.convert import Reading
from potok.records.conversion.fit import fit
from potok.records.formats.format import Column, Encoded
from potok.records.formats.json.objects import dump_each
from potok.records.json_key import dump_key, dump_typed_key, load_key
from potok.records.rows import rows_of
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema

_HINT = "use text, numbers, or lists and dicts of these"
_SIGN = np.uint64(1 << 63)
_EIGHT_BYTES = struct.Struct(">Q")


class UnusableKeyError(SchemaError):
    """An object that cannot be a key."""


def encode_keys(column: Column) -> pa.Array:
    """Return the bytes of each key, null for None; raise `UnusableKeyError` if some key has none."""
    encoded = encode_each_key(column)
    for row, reason in encoded.errors.items():
        raise UnusableKeyError(f"key {row}: {reason}", hint=_HINT)
    return encoded.values


def encode_each_key(column: Column) -> Encoded:
    """Like `encode_keys`, with a reason for each key that has no bytes. This concerns only keys without a type."""
    if isinstance(column, list):
        return _plain_texts(column) or dump_each(column, dump_key, "cannot be a key")
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    arrow = column.type
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return Encoded(column.cast(pa.binary()))
    if pa.types.is_binary(arrow):
        return Encoded(column)
    if pa.types.is_boolean(arrow):
        return Encoded(_fixed(column, column.cast(pa.uint8()), np.dtype(np.uint8)))
    if _is_ordinal(arrow):
        return Encoded(_fixed(column, _integers(column), np.dtype(">u8")))
    if pa.types.is_floating(arrow):
        return Encoded(_fixed(column, column.cast(pa.float64()), np.dtype(">u8")))
    return dump_each(rows_of(column), dump_typed_key, "cannot be a key")


def _plain_texts(keys: list[Any]) -> Encoded | None:
    """Encode keys that are all text without characters that JSON escapes: their JSON is the text in quotes."""
    if set(map(type, keys)) != {str}:
        return None
    try:
        texts = pa.array(keys, pa.string())
    except (UnicodeEncodeError, pa.ArrowException):
        return None
    if pc.any(pc.match_substring_regex(texts, r'["\\\x00-\x1f]')).as_py():
        return None
    return Encoded(pc.binary_join_element_wise('"', texts, '"', "").cast(pa.binary()))


def encode_key(key: Any, arrow: pa.DataType | None = None) -> bytes | None:
    """Return the bytes of one key, the same as from `encode_keys` in a column of this type."""
    if key is None:
        return None
    if arrow is None:
        try:
            return dump_key(key)
        except TypeError as error:
            raise UnusableKeyError(f"cannot be a key: {error}", hint=_HINT) from error
    if type(key) is str and pa.types.is_string(arrow) and key.isascii():
        return key.encode()
    fitted = fit([key], _schema(arrow), Reading.PYTHON)
    if fitted.errors:
        raise UnusableKeyError(f"a key of type {arrow}: {fitted.errors[0]}")
    found: bytes | None = encode_keys(fitted.column)[0].as_py()
    return found


def decode_keys(encoded: Iterable[bytes | None], arrow: pa.DataType | None = None) -> list[Any]:
    """Return the keys of these bytes, as the objects that lambdas see."""
    texts = list(encoded)
    if arrow is None:
        return [None if text is None else load_key(text) for text in texts]
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return [None if text is None else text.decode() for text in texts]
    if pa.types.is_binary(arrow):
        return texts
    if pa.types.is_boolean(arrow):
        return [None if text is None else text != b"\0" for text in texts]
    if _is_ordinal(arrow):
        numbers = [None if text is None else _EIGHT_BYTES.unpack(text)[0] - (1 << 63) for text in texts]
        return rows_of(pa.array(numbers, pa.int64()).cast(_int_type(arrow)).cast(arrow))
    if pa.types.is_floating(arrow):
        return [None if text is None else _float_of(text) for text in texts]
    objects = [None if text is None else orjson.loads(text) for text in texts]
    return rows_of(fit(objects, _schema(arrow), Reading.JSON).column)


def key_array(encoded: Sequence[bytes], arrow: pa.DataType | None) -> pa.Array:
    """Return the keys of these bytes as a column; keys without a type as text: JSON, except for those that are text."""
    if arrow is None:
        keys = zip(decode_keys(encoded), encoded, strict=True)
        return pa.array([key if type(key) is str else text.decode() for key, text in keys], pa.string())
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_binary(arrow):
        return pa.array(encoded, pa.binary()).cast(arrow)
    if _is_ordinal(arrow):
        numbers = (np.frombuffer(b"".join(encoded), ">u8").astype(np.uint64) ^ _SIGN).view(np.int64)
        return pa.array(numbers).cast(_int_type(arrow)).cast(arrow)
    return pa.array(decode_keys(encoded, arrow), arrow)


def _schema(arrow: pa.DataType) -> Schema:
    schema = declared_schema(arrow)
    assert schema is not None
    return schema


def _is_ordinal(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow) or pa.types.is_temporal(arrow))


def _int_type(arrow: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_date32(arrow) or pa.types.is_time32(arrow) else pa.int64()


def _integers(column: pa.Array) -> pa.Array:
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    return column.cast(_int_type(column.type)).cast(pa.int64())


def _fixed(column: pa.Array, plain: pa.Array, out: np.dtype[Any]) -> pa.Array:
    """Return a binary array of the numbers' bytes, big-endian."""
    width = out.itemsize
    if pa.types.is_floating(plain.type):
        # Adding zero turns a negative zero into a positive one; they are equal, so they are one key.
        numbers = plain.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        bits = numbers.view(np.uint64)
        bits = np.where(bits & _SIGN, ~bits, bits ^ _SIGN)
    elif width == 1:
        bits = plain.fill_null(0).to_numpy(zero_copy_only=False)
    else:
        bits = plain.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64) ^ _SIGN
    data = pa.py_buffer(bits.astype(out).tobytes())
    offsets = pa.py_buffer(np.arange(0, (len(column) + 1) * width, width, dtype=np.int32).tobytes())
    validity = pa.array(column.is_valid().to_numpy(zero_copy_only=False)).buffers()[1] if column.null_count else None
    return pa.Array.from_buffers(pa.binary(), len(column), [validity, offsets, data])


def _float_of(text: bytes) -> float:
    bits = _EIGHT_BYTES.unpack(text)[0]
    bits = bits ^ (1 << 63) if bits >> 63 else ~bits & (1 << 64) - 1
    number: float = struct.unpack(">d", _EIGHT_BYTES.pack(bits))[0]
    return number

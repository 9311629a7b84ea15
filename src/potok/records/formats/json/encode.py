"""Encode typed columns as JSON, whole columns at a time."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

_BLOCK_ROWS = 65_536
_NULL = pa.scalar("null")
_QUOTE = pa.scalar('"')
_COMMA = pa.scalar(",")
_EMPTY = pa.scalar("")
_ESCAPED = r'["\\\x00-\x1f]'
_DIGITS_ONLY = r"^-?\d+$"

Scalars: TypeAlias = Callable[[pa.Array], pa.Array]
"""Writes the items of a scalar column, all kinds but text; null for null."""


def encode_typed(column: pa.Array, scalars: Scalars | None = None) -> pa.Array:
    """Return the JSON text of each row, null for null.

    Instants, dates and times are ISO text, decimals and bytes (base64) text; a number that is not finite is null. A
    double always looks like one: `100.0`. `scalars` overrides how scalars other than text are written.
    """
    blocks = [column.slice(start, _BLOCK_ROWS) for start in range(0, len(column), _BLOCK_ROWS)]
    texts = [pc.if_else(block.is_valid(), texts_of(block, scalars), None).cast(pa.binary()) for block in blocks]
    return pa.concat_arrays(texts) if texts else pa.array([], pa.binary())


def texts_of(column: pa.Array, scalars: Scalars | None = None) -> pa.Array:
    """Return the JSON text of each item; `null` for null, so that the result has no nulls."""
    arrow = column.type
    if column.null_count == len(column):
        texts = pa.nulls(len(column), pa.string())
    elif pa.types.is_string(arrow):
        texts = _strings(column)
    elif pa.types.is_struct(arrow):
        texts = _structs(column, scalars)
    elif pa.types.is_map(arrow):
        texts = _maps(column, scalars)
    elif pa.types.is_list(arrow):
        texts = _joined(column, texts_of(column.flatten(), scalars), "[", "]")
    else:
        texts = (scalars or _scalars)(column)
    return texts.fill_null("null") if texts.null_count else texts


def _scalars(column: pa.Array) -> pa.Array:
    arrow = column.type
    if pa.types.is_floating(arrow):
        return doubles(column)
    if pa.types.is_integer(arrow) or pa.types.is_boolean(arrow):
        return column.cast(pa.string())
    if pa.types.is_timestamp(arrow):
        texts = _instants(column)
    elif pa.types.is_date(arrow) or pa.types.is_time(arrow):
        texts = column.cast(pa.string())
    elif pa.types.is_decimal(arrow):
        texts = decimals(column)
    else:
        texts = base64_of(column)
    return quoted(texts)


def decimals(column: pa.Array) -> pa.Array:
    """Return all digits of each decimal, never an exponent."""
    return pa.array([None if item is None else f"{item:f}" for item in column.to_pylist()], pa.string())


def base64_of(column: pa.Array) -> pa.Array:
    texts = [None if item is None else base64.b64encode(item).decode() for item in column.to_pylist()]
    return pa.array(texts, pa.string())


def quoted(texts: pa.Array) -> pa.Array:
    """Return texts without characters to escape, in quotes."""
    return pc.binary_join_element_wise(_QUOTE, texts, _QUOTE, _EMPTY)


def _strings(column: pa.Array) -> pa.Array:
    texts = quoted(column)
    special = pc.match_substring_regex(column, _ESCAPED)
    if not pc.any(special).as_py():
        return texts
    rows = pc.indices_nonzero(special)
    escaped = pa.array([orjson.dumps(text).decode() for text in column.take(rows).to_pylist()], pa.string())
    return pc.replace_with_mask(texts, special.fill_null(False), escaped)


def doubles(column: pa.Array) -> pa.Array:
    """Return finite numbers as text with a point or an exponent; null for the others."""
    numbers = column.cast(pa.float64())
    finite = pc.is_finite(numbers)
    texts = numbers.cast(pa.string())
    if not pc.all(finite).as_py():
        texts = pc.if_else(finite, texts, pa.scalar(None, pa.string()))
    whole = pc.match_substring_regex(texts, _DIGITS_ONLY)
    if not pc.any(whole).as_py():
        return texts
    return pc.binary_join_element_wise(texts, pc.if_else(whole, ".0", ""), _EMPTY)


def _instants(column: pa.Array) -> pa.Array:
    """Return ISO text, with a fraction if it is not zero."""
    whole = pc.equal(pc.microsecond(column), 0)
    whole = pc.and_(whole, pc.equal(pc.millisecond(column), 0))
    zone = column.type.tz
    if pc.all(whole).as_py():
        texts = column.cast(pa.timestamp("s", zone)).cast(pa.string())
    elif not pc.any(whole).as_py():
        texts = column.cast(pa.string())
    else:
        short = pc.floor_temporal(column, unit="second").cast(pa.timestamp("s", zone)).cast(pa.string())
        texts = pc.if_else(whole, short, column.cast(pa.string()))
    return pc.binary_replace_slice(texts, start=10, stop=11, replacement="T")


def _structs(column: pa.StructArray, scalars: Scalars | None) -> pa.Array:
    pieces: list[pa.Array | pa.Scalar] = []
    before = "{"
    for index, field in enumerate(column.type):
        pieces += [pa.scalar(f"{before}{orjson.dumps(field.name).decode()}:"), texts_of(column.field(index), scalars)]
        before = ","
    pieces.append(pa.scalar("}" if pieces else "{}"))
    texts = pc.binary_join_element_wise(*pieces, _EMPTY)
    if isinstance(texts, pa.Scalar):
        texts = pa.repeat(texts, len(column))
    return _where_valid(column, texts)


def _maps(column: pa.MapArray, scalars: Scalars | None) -> pa.Array:
    keys, items = column.type.key_type, column.type.item_type
    lists = column.cast(pa.list_(pa.struct([("key", keys), ("value", items)])))
    entries = lists.flatten()
    names = entries.field(0)
    texts = _strings(names) if pa.types.is_string(keys) else quoted(names.cast(pa.string()))
    members = pc.binary_join_element_wise(texts, pa.scalar(":"), texts_of(entries.field(1), scalars), _EMPTY)
    return _joined(lists, members, "{", "}")


def _joined(column: pa.Array, texts: pa.Array, first: str, last: str) -> pa.Array:
    """Join the texts of list items, which are flat, to one text for each list."""
    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts), _COMMA)
    return _where_valid(column, pc.binary_join_element_wise(pa.scalar(first), joined, pa.scalar(last), _EMPTY))


def _where_valid(column: pa.Array, texts: pa.Array) -> pa.Array:
    return pc.if_else(column.is_valid(), texts, _NULL) if column.null_count else texts

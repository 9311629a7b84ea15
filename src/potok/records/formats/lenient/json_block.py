"""Decode many JSON objects at once, with lenient conversion, through Arrow's JSON reader.

Timestamps, dates and times are read as numbers. Arrow's reader is case-sensitive, so each name is requested in the case
that the first values of the block use. The text shows which rows that could be wrong for:

- A name requested as declared: a row with a value for it is right, because the exact name has priority. Only rows
  without a value are searched for the name in another case.
- A name requested in another case: all rows are searched, also for the declared name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from potok.records.conversion.lenient import folds
from potok.records.formats.json.block import (
    Block,
    Mask,
    bytes_of,
    documents_of,
    doubtful_bytes,
    mask_of,
    parse_documents,
    spread,
)
from potok.records.schemas.schema import Schema, holds_decimal

_SAMPLES = 3
_DIGITS = 38
# Arrow's reader reads numbers that are too small for a decimal as zero.
_TINY = r"[0-9][eE]-|\.[0-9]{36}"
_MINUS_ZERO = np.uint64(1 << 63)
_ESCAPABLE = frozenset('"\\/') | {chr(code) for code in range(32)}
FOLDING = "ßŉıſǰẖẗẘẙẚﬀﬁﬂﬃﬄﬅﬆ"
"""Non-ASCII characters whose upper case is, or starts with, an ASCII letter."""
_FOLDING = "|".join(FOLDING)

# The years 1 to 9999, which is what Python supports, and one day.
_RANGES = (
    (pa.types.is_timestamp, -62_135_596_800_000, 253_402_300_799_999),
    (pa.types.is_date, -719_162, 2_932_896),
    (pa.types.is_time, 0, 86_399_999),
)


def readable_in_blocks(schema: Schema) -> bool:
    """Return whether Arrow's reader treats every type of the schema as we do and every name can be searched for."""
    return schema.kind == "struct" and _readable(schema)


def _readable(schema: Schema) -> bool:
    if schema.kind == "struct":
        plain = all(field.nullable and not field.has_default and _readable(field.schema) for field in schema.fields)
        return plain and bool(schema.fields) and all(map(_searchable, schema.names))
    if schema.kind == "list":
        assert schema.item is not None
        return schema.item_nullable and _readable(schema.item)
    arrow, types = schema.arrow, pa.types
    plain = types.is_string(arrow) or types.is_boolean(arrow) or types.is_integer(arrow) or types.is_float64(arrow)
    return schema.kind == "scalar" and (plain or _exact(arrow) or _range(arrow) is not None)


def _exact(arrow: pa.DataType) -> bool:
    """Return whether the reader cannot overflow when it adds the digits of the scale to those of the text."""
    return bool(pa.types.is_decimal(arrow) and arrow.precision + arrow.scale <= _DIGITS)


def _searchable(name: str) -> bool:
    return not folds(name) or (name.isascii() and _ESCAPABLE.isdisjoint(name))


def read_block(values: pa.Array, schema: Schema) -> Block | None:
    """Decode the values to a column, or return None if the block as a whole cannot be read."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return None
    doubtful = doubtful_bytes(values)
    if holds_decimal(schema):
        doubtful |= mask_of(pc.match_substring_regex(values, _TINY))
    kept = values.filter(pa.array(~doubtful)) if doubtful.any() else values
    spelling = _spelling(kept, schema)
    asked = [(spelling[field.name], _read_as(field.schema, spelling)) for field in schema.fields]
    table = parse_documents(documents_of(kept), len(kept), asked)
    if table is None:
        return None
    doubts = _Doubts(np.zeros(len(kept), dtype=bool), np.zeros(len(kept), dtype=bool))
    columns = []
    for index, declared in enumerate(schema.fields):
        read = table.column(index).combine_chunks()
        doubts.note_missing(declared.name, read)
        columns.append(_meant(read, declared.schema, doubts))
    column = pa.StructArray.from_arrays(columns, fields=list(schema.arrow))
    doubts.doubtful |= _misread_names(kept, spelling, doubts)
    return spread(Block(column, doubts.doubtful), doubtful)


@dataclass(slots=True)
class _Doubts:
    """Rows to decode one by one, rows with a missing field, and the names of these fields."""

    doubtful: Mask
    lacking: Mask
    names: set[str] = field(default_factory=set)

    def note_missing(self, name: str, array: pa.Array, parent: pa.Array | None = None) -> None:
        if array.null_count and folds(name):
            missing = array.is_null()
            self.lacking |= mask_of(missing if parent is None else pc.and_(missing, parent.is_valid()))
            self.names.add(name)


def _read_as(schema: Schema, spelling: Mapping[str, str]) -> pa.DataType:
    if schema.kind == "struct":
        return pa.struct([(spelling[field.name], _read_as(field.schema, spelling)) for field in schema.fields])
    if schema.kind == "list":
        assert schema.item is not None
        return pa.list_(_read_as(schema.item, spelling))
    return schema.arrow if _range(schema.arrow) is None else pa.int64()


def _meant(array: pa.Array, schema: Schema, doubts: _Doubts) -> pa.Array:
    """Convert the array to the declared type."""
    if schema.kind == "struct":
        children = []
        for index, declared in enumerate(schema.fields):
            child = array.field(index)
            doubts.note_missing(declared.name, child, array)
            children.append(_meant(child, declared.schema, doubts))
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(schema.arrow), mask=mask)
    if schema.kind == "list":
        return _meant_list(array, schema, doubts)
    limits = _range(schema.arrow)
    if limits is not None:
        good = pc.and_(pc.greater_equal(array, limits[0]), pc.less_equal(array, limits[1]))
        if not pc.all(good).as_py():
            doubts.doubtful |= mask_of(pc.invert(good))
            array = pc.if_else(good, array, pa.scalar(None, pa.int64()))
        return _instants(array, schema.arrow)
    if pa.types.is_decimal(schema.arrow):
        # The reader checks the digits of the text, not those that the scale adds.
        largest = pa.scalar(Decimal(f"{'9' * schema.arrow.precision}E-{schema.arrow.scale}"), schema.arrow)
        doubts.doubtful |= mask_of(pc.greater(pc.abs(array), largest))
    if pa.types.is_float64(schema.arrow) and len(array):
        bits = np.frombuffer(array.buffers()[1], np.uint64, len(array), array.offset * 8)
        doubts.doubtful |= bits == _MINUS_ZERO
    return array


def _meant_list(array: pa.ListArray, schema: Schema, doubts: _Doubts) -> pa.Array:
    assert schema.item is not None
    items, offsets = array.values, array.offsets.to_numpy()
    inside = _Doubts(np.zeros(len(items), dtype=bool), np.zeros(len(items), dtype=bool), doubts.names)
    meant = _meant(items, schema.item, inside)
    owners = np.repeat(np.arange(len(array)), np.diff(offsets))
    between = slice(offsets[0], offsets[-1])
    doubts.doubtful[owners[inside.doubtful[between]]] = True
    doubts.lacking[owners[inside.lacking[between]]] = True
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(array.offsets, meant, type=schema.arrow, mask=mask)


def _instants(numbers: pa.Array, arrow: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(arrow):
        return pc.multiply(numbers, 1000).cast(arrow)
    return numbers.cast(pa.int32()).cast(arrow)


def _range(arrow: pa.DataType) -> tuple[int, int] | None:
    for matches, first, last in _RANGES:
        if matches(arrow):
            return first, last
    return None


def _spelling(values: pa.Array, schema: Schema) -> dict[str, str]:
    """Return each name in the case that the first valid values use, or as declared if it is missing or ambiguous."""
    seen: set[str] = set()
    for text in values.slice(0, _SAMPLES).to_pylist():
        try:
            _collect(orjson.loads(text), seen)
        except orjson.JSONDecodeError:
            continue
    names = set(_names(schema))
    folded: dict[str, set[str]] = {}
    for key in seen:
        folded.setdefault(key.upper(), set()).add(key)
    chosen = {name: name for name in names}
    for name in names - seen:
        if folds(name) and len(folded.get(name, ())) == 1:
            (key,) = folded[name]
            # A key that is also a declared name would be requested twice.
            if key not in names and _searchable(key):
                chosen[name] = key
    return chosen


def _collect(obj: object, seen: set[str]) -> None:
    if isinstance(obj, dict):
        seen.update(obj)
        for item in obj.values():
            _collect(item, seen)
    elif isinstance(obj, list):
        for item in obj:
            _collect(item, seen)


def _names(schema: Schema) -> Iterable[str]:
    for declared in schema.fields:
        yield declared.name
        yield from _names(declared.schema)
    if schema.item is not None:
        yield from _names(schema.item)


def _misread_names(values: pa.Array, spelling: Mapping[str, str], doubts: _Doubts) -> Mask:
    """Return the rows that may contain a name in another case than the requested one."""
    asked = {name: name for name in doubts.names if spelling[name] == name}
    respelled = {name: key for name, key in spelling.items() if name != key}
    misread = _other_spellings(values, respelled)
    if asked:
        rows = np.flatnonzero(doubts.lacking)
        misread[rows] |= _other_spellings(values.take(pa.array(rows)), asked)
    return misread


def _other_spellings(values: pa.Array, spelling: Mapping[str, str]) -> Mask:
    found: Mask = np.zeros(len(values), dtype=bool)
    if not spelling or not len(values):
        return found
    # Search the whole text first, at a gigabyte per second; search row by row only if it contains a match.
    text = bytes_of(values)
    small = text.lower()
    for name, key in spelling.items():
        exact, any_case = f'"{key}"', f'"{name}"'
        if text.count(exact.encode()) != small.count(any_case.lower().encode()):
            counts = pc.count_substring(values, exact), pc.count_substring(values, any_case, ignore_case=True)
            found |= mask_of(pc.not_equal(*counts))
    if b"\\u" in text:
        found |= mask_of(pc.match_substring(values, "\\u"))
    if not text.isascii():
        found |= mask_of(pc.match_substring_regex(values.cast(pa.string()), _FOLDING))
    return found

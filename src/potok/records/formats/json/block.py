"""Read many JSON objects at once through Arrow's JSON reader.

The reader does not know where a value ends, so the first brace of each value is replaced by a line break, a brace and
a marker field: `{"a":1}` is read as `\\n{"<marker>":1,"a":1}`. The marker's name is random, so that no value contains
it. If the reader returns as many rows as there are values and each row has the marker, then each row started at our
marker and ended before the next, so every value is exactly one object.

Values that the reader accepts and orjson does not, or reads differently, are found in the bytes (`NaN` and `Infinity`
are numbers, nesting has no limit, invalid UTF-8 passes) or in the result (`-0` is a negative zero); such rows are
doubtful.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from potok.records.conversion.fit import with_default
from potok.records.declared_class import retyped
from potok.records.schemas.column_types import LOCAL_TIMESTAMP
from potok.records.schemas.schema import Field, Schema

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

# As short as is safe: the reader parses it with every value.
_MARK = secrets.token_urlsafe(6)
_FIRST = f'\n{{"{_MARK}":1,'.encode()
_DEEPEST = 500  # orjson stops at 1,024 levels; a value with fewer brackets than this cannot reach them
_MINUS_ZERO = np.uint64(1 << 63)


@dataclass(slots=True)
class Block:
    """A column, and the rows that the row-by-row decoder might read differently."""

    column: pa.Array
    doubtful: Mask


def readable_in_blocks(schema: Schema) -> bool:
    """Whether Arrow's reader reads every type in the schema as we do.

    It does not: maps (the reader has none), decimals, dates, bytes and single floats anywhere, instants inside
    lists and structs, defaults inside structs. Values with such a field, among the requested ones, are read row
    by row.
    """
    return schema.kind == "struct" and all(
        pa.types.is_timestamp(field.type) or _same_meaning(field.schema) for field in schema.fields
    )


def _same_meaning(schema: Schema) -> bool:
    if schema.kind == "struct":
        plain = all(_same_meaning(field.schema) and not field.has_default for field in schema.fields)
        return plain and bool(schema.fields)
    if schema.kind == "list":
        assert schema.item is not None
        return _same_meaning(schema.item)
    types = (pa.types.is_string, pa.types.is_boolean, pa.types.is_integer, pa.types.is_float64)
    return any(matches(schema.arrow) for matches in types)


def read_block(values: pa.Array, schema: Schema) -> Block | None:
    """Return the values as a column, or None if the block as a whole cannot be read."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return None
    doubtful = doubtful_bytes(values)
    kept = values.filter(pa.array(~doubtful)) if doubtful.any() else values
    table = _read(kept, schema)
    if table is None:
        return None
    doubtful_kept = np.zeros(len(kept), dtype=bool)
    columns = [_field(table.column(field.name), field, doubtful_kept) for field in schema.fields]
    if columns:
        fields = list(schema.arrow)
        columns = [retyped(child, field.type) for child, field in zip(columns, fields, strict=True)]
        column = pa.StructArray.from_arrays(columns, fields=fields)
    else:
        column = pa.array([{}] * len(kept), schema.arrow)
    return spread(Block(column, doubtful_kept), doubtful)


def spread(kept: Block, left_out: Mask) -> Block:
    """Return the block of all rows, from that of the rows that were not excluded."""
    if not left_out.any():
        return kept
    indexes = np.cumsum(~left_out) - 1
    doubtful = left_out.copy()
    doubtful[~left_out] = kept.doubtful
    return Block(kept.column.take(pa.array(indexes, mask=left_out)), doubtful)


def doubtful_bytes(values: pa.Array) -> Mask:
    """Return the rows that must not go through the reader: those that are not objects, and those that it would
    misread.
    """
    lengths = pc.binary_length(values)
    # After the marker, an empty object would start with a comma.
    doubtful: Mask = ~mask_of(pc.and_(pc.starts_with(values, "{"), pc.greater(lengths, len("{}"))))
    text = bytes_of(values)
    for word in (b"NaN", b"Inf"):
        # Searching for one letter is many times faster than for three, and usually sufficient.
        if word[:1] in text and word in text:
            doubtful |= mask_of(pc.match_substring(values, word))
    if len(values) and (pc.max(lengths).as_py() or 0) > 2 * _DEEPEST:
        opened = pc.add(pc.count_substring(values, "{"), pc.count_substring(values, "["))
        doubtful |= mask_of(pc.greater(opened, _DEEPEST))
    return doubtful


def _read(values: pa.Array, schema: Schema) -> pa.Table | None:
    """Return the fields as in the text, instants as numbers or as text; None if they cannot be read so."""
    text = documents_of(values)
    instants = any(pa.types.is_timestamp(field.type) for field in schema.fields)
    for instant in (pa.int64(), pa.string()) if instants else (pa.int64(),):
        fields = [(f.name, instant if pa.types.is_timestamp(f.type) else f.type) for f in schema.fields]
        table = parse_documents(text, len(values), fields)
        if table is not None:
            return table
    return None


def parse_documents(text: pa.Buffer, rows: int, fields: list[tuple[str, pa.DataType]]) -> pa.Table | None:
    """Return these fields of the values, a row for each; None if some value is not one object or has another
    type.
    """
    table = _parse(text, pa.schema([*fields, (_MARK, pa.int8())]))
    if table is None or table.num_rows != rows or table.column(_MARK).null_count:
        return None
    return table


def _parse(text: pa.Buffer, schema: pa.Schema) -> pa.Table | None:
    # The reader splits its input into blocks at line breaks, which may be inside a value; a single block is not
    # split.
    try:
        return pa.json.read_json(
            pa.BufferReader(text),
            read_options=pa.json.ReadOptions(use_threads=False, block_size=text.size + 1),
            parse_options=pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None


def documents_of(values: pa.Array) -> pa.Buffer:
    """Return all values in one text, each after a marker."""
    marked = pc.binary_replace_slice(values, start=0, stop=1, replacement=_FIRST)
    offsets = _offsets(marked)
    return marked.buffers()[2].slice(offsets[0], offsets[-1] - offsets[0]) if len(marked) else pa.py_buffer(b"")


def _field(column: pa.ChunkedArray, field: Field, doubtful: Mask) -> pa.Array:
    array = column.combine_chunks()
    if pa.types.is_timestamp(field.type):
        array, unsure = instants_of(array, field.type)
        doubtful |= unsure
    if array.null_count and (field.required or field.has_default):
        missing = mask_of(array.is_null())
        if field.nullable or field.required:
            doubtful |= missing
        else:
            array = with_default(array, missing, field)
    _inspect(array, field.schema, doubtful)
    return array


def _inspect(array: pa.Array, schema: Schema, doubtful: Mask) -> None:
    """Flag the rows that contain a negative zero, or a null where none is allowed."""
    if schema.kind == "struct":
        for index, field in enumerate(schema.fields):
            child = array.field(index)
            _inspect(child, field.schema, doubtful)
            if field.required and child.null_count:
                doubtful |= mask_of(pc.and_(child.is_null(), array.is_valid()))
    elif schema.kind == "list":
        assert schema.item is not None
        items = array.flatten()
        bad = np.zeros(len(items), dtype=bool)
        _inspect(items, schema.item, bad)
        if items.null_count and not schema.item_nullable:
            bad |= mask_of(items.is_null())
        if bad.any():
            doubtful[pc.list_parent_indices(array).to_numpy()[bad]] = True
    elif pa.types.is_float64(schema.arrow) and len(array):
        bits = np.frombuffer(array.buffers()[1], np.uint64, len(array), array.offset * 8)
        doubtful |= bits == _MINUS_ZERO


def mask_of(array: pa.Array) -> Mask:
    """Return a boolean array as numpy's, null as false."""
    filled: Mask = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
    return filled.copy()


def _offsets(values: pa.Array) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4)


def bytes_of(values: pa.Array) -> bytes:
    """Return the concatenated bytes of all values."""
    if not len(values) or values.buffers()[2] is None:
        return b""
    offsets = _offsets(values)
    text: bytes = values.buffers()[2].slice(offsets[0], offsets[-1] - offsets[0]).to_pybytes()
    return text


_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999, the range of Python
_ISO = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?"
    r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$"
)


def instants_of(array: pa.Array, arrow: pa.DataType) -> tuple[pa.Array, Mask]:
    """Return numbers or text as instants, null where a row must be read individually.

    Only text in the full form with a zone is read here, which Arrow and Python read in the same way.
    """
    given = array.is_valid()
    if pa.types.is_integer(array.type):
        good = pc.and_(pc.greater_equal(array, _FIRST_MS), pc.less_equal(array, _LAST_MS))
        instants = pc.multiply(_only(array, good), 1000).cast(LOCAL_TIMESTAMP)
    else:
        good = pc.match_substring_regex(array, _ISO)
        try:
            instants = _only(array, good).cast(pa.timestamp("us", "UTC"))
        except pa.ArrowInvalid:  # for example February 31
            return pa.nulls(len(array), arrow), _numpy(given)
        micros = instants.cast(pa.int64())
        inside = pc.and_(pc.greater_equal(micros, _FIRST_MS * 1000), pc.less(micros, (_LAST_MS + 1) * 1000))
        good = pc.and_(good, inside)
        instants = _only(instants, good)
    unsure = pc.and_not(given, pc.fill_null(good, False))
    return instants.cast(pa.int64()).cast(arrow), _numpy(unsure)


def _only(array: pa.Array, good: pa.Array) -> pa.Array:
    if array.null_count == 0 and pc.all(good).as_py():
        return array
    return pc.if_else(good, array, pa.scalar(None, array.type))


def _numpy(array: pa.Array) -> Mask:
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask

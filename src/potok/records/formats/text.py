"""UTF-8 text, and scalars as text: a field of a delimited line, or a whole value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import SchemaError
from potok.records.conversion.convert import MisfitError, Reading, describe
from potok.records.conversion.fit import fit
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.formats.json.encode import texts_of
from potok.records.rows import column_of
from potok.records.schemas.schema import Schema

_SCALARS = (str, bool, int, float)


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A value is a text, or one scalar as text."""

    name: str = "text"

    def decode(self, values: pa.Array, schema: Schema | None, columns: Sequence[str] | None = None) -> Decoded:
        values = binary_column(values)
        read = None if schema is None else cell_reader(schema)
        texts, errors = decode_utf8(values)
        if schema is None or read is None:
            return Decoded(texts.to_pylist(), errors)
        if pa.types.is_string(schema.arrow):
            return Decoded(texts, errors)
        objects = [None if text is None else read(text) for text in texts.to_pylist()]
        fitted = fit(objects, schema, Reading.JSON)
        return Decoded(fitted.column, {**fitted.errors, **errors})

    def encode(self, column: Column, schema: Schema | None) -> Encoded:
        if not isinstance(column, list):
            return Encoded(cell_texts(column).cast(pa.binary()))
        if schema is not None:
            fitted = column_of(column, schema)
            return Encoded(cell_texts(fitted.column).cast(pa.binary()), fitted.errors)
        errors: dict[int, str] = {}
        texts: list[bytes | None] = [None] * len(column)
        for row, obj in enumerate(column):
            if obj is not None:
                try:
                    texts[row] = _text(obj)
                except MisfitError as misfit:
                    errors[row] = str(misfit)
        return Encoded(pa.array(texts, pa.binary()), errors)


def decode_utf8(values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
    """Return the values as text; null and a reason where one is not UTF-8."""
    try:
        return values.cast(pa.string()), {}
    except pa.ArrowInvalid:
        pass  # some value is bad: find which
    errors: dict[int, str] = {}
    texts: list[str | None] = [None] * len(values)
    for row, value in enumerate(values.to_pylist()):
        if value is not None:
            try:
                texts[row] = value.decode()
            except UnicodeDecodeError as error:
                errors[row] = f"not valid UTF-8: {error.reason} at byte {error.start}"
    return pa.array(texts, pa.string()), errors


def _text(obj: Any) -> bytes:
    if isinstance(obj, bool):
        return b"true" if obj else b"false"
    try:
        if isinstance(obj, str):
            return obj.encode()
    except UnicodeEncodeError as error:
        raise MisfitError("expected string, got text with a lone surrogate") from error
    if isinstance(obj, _SCALARS):
        try:
            return str(obj).encode()
        except ValueError as error:
            raise MisfitError(f"cannot be written as text: {error}") from error
    raise MisfitError(f"expected text, got {describe(obj)}")


_INTEGER = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


def cell_reader(schema: Schema) -> Callable[[str], Any]:
    """Return a function that converts text to the object that JSON would contain; invalid text stays text."""
    arrow = schema.arrow
    if schema.kind != "scalar":
        raise SchemaError(f'a text cannot hold "{schema}"', hint='use format "json" for lists, maps and structs')
    if pa.types.is_integer(arrow) or pa.types.is_timestamp(arrow):
        return lambda text: int(text) if _INTEGER.fullmatch(text) else text
    if pa.types.is_floating(arrow):
        return lambda text: float(text) if _NUMBER.fullmatch(text) else text
    if pa.types.is_boolean(arrow):
        return lambda text: _BOOLEANS.get(text.lower(), text)
    return lambda text: text


def cell_texts(column: pa.Array) -> pa.Array:
    """Return the text of each item, null for null and for numbers that are not finite."""
    if pa.types.is_nested(column.type):
        raise SchemaError(f"a text cannot hold {column.type}", hint='use format "json" for lists, maps and structs')
    if pa.types.is_string(column.type):
        return column
    texts = pc.utf8_trim(texts_of(column), characters='"')
    return pc.if_else(pc.equal(texts, "null"), pa.scalar(None, pa.string()), texts)

"""UTF-8 text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from potok.records.conversion.convert import MisfitError, Reading, describe
from potok.records.conversion.fit import fit
from potok.records.formats.format import Column, Decoded, Encoded, binary_column
from potok.records.formats.scalar_text import cell_reader, cell_texts
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

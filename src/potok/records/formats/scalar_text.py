"""Scalars as plain text: a field of a delimited line, or a whole text value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import SchemaError
from potok.records.formats.json.encode import texts_of
from potok.records.schemas.schema import Schema

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

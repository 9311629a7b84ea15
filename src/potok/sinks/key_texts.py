"""Keys of records as text: the names of rows, documents and messages in other systems."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from potok.records.formats.format import Column, Encoded
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema

NO_KEY = "the record has no key: set one with select_key"


def keys_as_texts(column: Column, *, required: bool) -> Encoded:
    """Return keys as text: strings unchanged, anything else as JSON. A null is an error if a key is required."""
    if isinstance(column, list):
        found = key_texts(column)
    elif pa.types.is_string(column.type):
        found = Encoded(column, {})
    else:
        encoded = format_named("json").encode(column, declared_schema(column.type))
        found = Encoded(encoded.values.cast(pa.string()), encoded.errors)
    if not required or not found.values.null_count:
        return found
    nulls = dict.fromkeys(pc.indices_nonzero(found.values.is_null()).to_pylist(), NO_KEY)
    return Encoded(found.values, {**nulls, **found.errors})


def key_texts(keys: list[Any]) -> Encoded:
    """Convert dynamic keys to text, as in a topic: strings unchanged, anything else as JSON."""
    encoded = format_named("json").encode([None if type(key) is str else key for key in keys], None)
    texts = encoded.values.cast(pa.string()).to_pylist()
    mixed = [key if type(key) is str else text for key, text in zip(keys, texts, strict=True)]
    errors = dict(encoded.errors)
    for row, text in enumerate(mixed):
        if text is not None and not _is_text(text):
            errors[row], mixed[row] = "the key is not text that can be written", None
    return Encoded(pa.array(mixed, pa.string()), errors)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

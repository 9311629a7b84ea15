"""The format of a type that nobody chose one for."""

from __future__ import annotations

import pyarrow as pa


def default_format(type_: pa.DataType | None) -> str:
    """Text for text, raw for bytes, and JSON for all else, so that a person can read what a topic holds."""
    if type_ is not None and pa.types.is_string(type_):
        return "text"
    if type_ is not None and pa.types.is_binary(type_):
        return "raw"
    return "json"

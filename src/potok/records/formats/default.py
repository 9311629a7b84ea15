"""The default format of a type."""

from __future__ import annotations

import pyarrow as pa


def default_format(type_: pa.DataType | None) -> str:
    """Return text for text, raw for bytes, and JSON for everything else, so that topics are human-readable."""
    if type_ is not None and pa.types.is_string(type_):
        return "text"
    if type_ is not None and pa.types.is_binary(type_):
        return "raw"
    return "json"

"""Turn columns of text into columns of JSON."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

_TO_ESCAPE = r'[\x00-\x1f"\\]'
_CONTROL = r"[\x00-\x1f]"
NULL = pa.scalar("null", pa.string())
_QUOTE = pa.scalar('"', pa.string())
_NOTHING = pa.scalar("", pa.string())


def unchanged(texts: pa.Array) -> pa.Array:
    """Return texts that are JSON already: whole numbers."""
    return texts


def quoted(texts: pa.Array) -> pa.Array:
    """Return texts as JSON strings."""
    if pc.any(pc.match_substring_regex(texts, _TO_ESCAPE)).as_py():
        texts = pc.replace_substring(texts, "\\", "\\\\")
        texts = pc.replace_substring(texts, '"', '\\"')
        for plain, escape in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
            texts = pc.replace_substring(texts, plain, escape)
        rare = pc.fill_null(pc.match_substring_regex(texts, _CONTROL), False)
        if pc.any(rare).as_py():
            texts = each(lambda text: "".join(f"\\u{ord(c):04x}" if c < " " else c for c in text))(texts)
    return pc.binary_join_element_wise(_QUOTE, texts, _QUOTE, _NOTHING)


def plain_quoted(texts: pa.Array) -> pa.Array:
    """Return texts without quotes, backslashes and control characters as JSON strings."""
    return pc.binary_join_element_wise(_QUOTE, texts, _QUOTE, _NOTHING)


def each(function: Callable[[str], str]) -> Callable[[pa.Array], pa.Array]:
    """Return a function that computes each text of a column by itself."""

    def render(texts: pa.Array) -> pa.Array:
        return pa.array([None if text is None else function(text) for text in texts.to_pylist()], pa.string())

    return render


def or_each(
    vectorised: Callable[[pa.Array], pa.Array], function: Callable[[str], str]
) -> Callable[[pa.Array], pa.Array]:
    """Return a function for a whole column; if some text is unusual, each text is computed by itself."""
    one_by_one = each(function)

    def render(texts: pa.Array) -> pa.Array:
        try:
            return vectorised(texts)
        except pa.ArrowInvalid:
            return one_by_one(texts)

    return render


def objects(names: Sequence[str], values: Sequence[pa.Array]) -> pa.Array:
    """Return columns of JSON as one column of JSON objects; null becomes `null`."""
    parts: list[pa.Array | pa.Scalar] = []
    for number, (name, column) in enumerate(zip(names, values, strict=True)):
        parts.append(_text(("," if number else "{") + orjson.dumps(name).decode() + ":"))
        parts.append(pc.fill_null(column, NULL) if column.null_count else column)
    parts.append(_text("}" if names else "{}"))
    return pc.binary_join_element_wise(*parts, _NOTHING)


def joined(*parts: pa.Array | str) -> pa.Array:
    """Join columns and constants of text."""
    return pc.binary_join_element_wise(*(_text(p) if isinstance(p, str) else p for p in parts), _NOTHING)


def where(mask: np.ndarray, replacement: str, column: pa.Array) -> pa.Array:
    """Return the column with a constant in the rows of a mask."""
    return pc.if_else(pa.array(mask), _text(replacement), column)


@functools.lru_cache(maxsize=4096)
def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.string())

"""Read and write JSON documents in strings, compatible with Jackson in ksqlDB.

Numbers keep their digits: 1.10 stays 1.10. orjson reads the documents; if it would lose digits, or rejects what Jackson
accepts, a slower reader reads them as Decimal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import orjson

MISSING: Final = object()
"""The result for an empty string, which is neither a document nor an error."""

_MOST_DIGITS: Final = 9_999
_BLANKS: Final = " \t\n\r"
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_SHORT: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_CONTROLS: Final = {code: _SHORT.get(chr(code), f"\\u{code:04X}") for code in range(32)}


class BadDocument(ValueError):
    """A string that is not valid JSON."""


def quick(text: str) -> Any:
    """Parse a document; fractional numbers may lose digits. Raises `BadDocument`."""
    try:
        return orjson.loads(text)
    except ValueError:
        return exact(text)


def exact(text: str) -> Any:
    """Parse a document with all digits of its numbers, ignoring what follows it. Raises `BadDocument`."""
    start = len(text) - len(text.lstrip(_BLANKS))
    if start == len(text):
        return MISSING
    try:
        found, end = _decoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        raise BadDocument(f"invalid JSON format: {text}") from None
    scalar = not isinstance(found, str | list | dict)
    if scalar and end < len(text) and text[end] not in _BLANKS:
        raise BadDocument(f"invalid JSON format: {text}")
    return found


@lru_cache(maxsize=1)
def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(parse_float=Decimal, parse_int=_whole, parse_constant=_no_constant)


def _whole(digits: str) -> int | Decimal:
    # Python rejects ints of thousands of digits; a Decimal holds them.
    return int(digits) if len(digits) < 4000 else Decimal(digits)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def has_fraction(node: Any) -> bool:
    """Return whether orjson may have lost digits."""
    if isinstance(node, dict):
        return any(map(has_fraction, node.values()))
    if isinstance(node, list):
        return any(map(has_fraction, node))
    return isinstance(node, float)


def looked_up(text: str, look: Callable[[Any], Any]) -> Any:
    """Return the result of `look` on a document, with all digits of its numbers."""
    found = look(quick(text))
    return look(exact(text)) if has_fraction(found) else found


def write(node: Any, number: Callable[[Decimal], str] = str) -> str:
    """Format a document as compact JSON. `number` formats fractional numbers."""
    if isinstance(node, dict | list) and (rendered := _at_once(node)):
        return rendered
    if isinstance(node, str):
        return f'"{_escape(node)}"'
    if isinstance(node, dict):
        items = (f"{write(key)}:{write(item, number)}" for key, item in node.items())
        return f"{{{','.join(items)}}}"
    if isinstance(node, list):
        return f"[{','.join(write(item, number) for item in node)}]"
    if isinstance(node, Decimal):
        return number(node or abs(node))
    if node is None:
        return "null"
    return str(node).lower()


def _at_once(node: Any) -> str:
    """Return orjson's output, or "" if it would differ: Decimal numbers, control characters."""
    try:
        rendered = orjson.dumps(node)
    except TypeError:
        return ""
    return "" if b"\\u00" in rendered else rendered.decode()


def plain(number: Decimal) -> str:
    """Format a number without an exponent. Raises `BadDocument` for a very long one, like Jackson."""
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _MOST_DIGITS:
        raise BadDocument(f"{number} has too many digits to be written without an exponent")
    return format(number, "f")


def _escape(text: str) -> str:
    """Escape a text without a call per character: each round of a text that is quoted again has twice as many."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return text.translate(_CONTROLS) if _CONTROL.search(text) else text


def encodable(text: str) -> str:
    """Replace each lone surrogate by ?, as Java does when it encodes UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

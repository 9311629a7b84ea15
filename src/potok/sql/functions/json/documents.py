"""JSON documents in text: read as Jackson reads them for ksqlDB, written as it writes them.

Numbers keep their digits: 1.10 stays 1.10. orjson reads the documents; where it would lose digits, or refuses what
Jackson takes, the document is read again by the slower reader that keeps them as Decimal.
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
"""What an empty text is: no document, and no mistake."""

_MOST_DIGITS: Final = 9_999
_BLANKS: Final = " \t\n\r"
_ESCAPED: Final = re.compile(r'[\x00-\x1f"\\]')
_SHORT: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


class BadDocument(ValueError):
    """A text that is no JSON."""


def quick(text: str) -> Any:
    """A document; its numbers with a point may have lost digits. Raises `BadDocument`."""
    try:
        return orjson.loads(text)
    except ValueError:
        return exact(text)


def exact(text: str) -> Any:
    """A document with every digit of its numbers. What stands behind it is not looked at. Raises `BadDocument`."""
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
    # Python refuses to make an int of thousands of digits; a Decimal holds them.
    return int(digits) if len(digits) < 4000 else Decimal(digits)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def has_fraction(node: Any) -> bool:
    """Whether digits may have been lost when orjson read this."""
    if isinstance(node, dict):
        return any(map(has_fraction, node.values()))
    if isinstance(node, list):
        return any(map(has_fraction, node))
    return isinstance(node, float)


def looked_up(text: str, look: Callable[[Any], Any]) -> Any:
    """What `look` finds in a document, with all digits of its numbers."""
    found = look(quick(text))
    return look(exact(text)) if has_fraction(found) else found


def write(node: Any, number: Callable[[Decimal], str] = str) -> str:
    """A document as text without blanks. `number` shows numbers with a fraction."""
    if isinstance(node, dict | list) and (shown := _at_once(node)):
        return shown
    if isinstance(node, str):
        return f'"{_ESCAPED.sub(_escape, node)}"'
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
    """What orjson writes, or "" if it would not write the same: numbers as Decimal, control characters."""
    try:
        shown = orjson.dumps(node)
    except TypeError:
        return ""
    return "" if b"\\u00" in shown else shown.decode()


def plain(number: Decimal) -> str:
    """A number without an exponent. Raises `BadDocument` for one that would fill pages, as Jackson does."""
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _MOST_DIGITS:
        raise BadDocument(f"{number} has too many digits to be written without an exponent")
    return format(number, "f")


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"


def encodable(text: str) -> str:
    """The text with a ? for each half of a surrogate pair, as Java writes it to UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

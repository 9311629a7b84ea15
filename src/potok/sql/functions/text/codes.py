"""CHR, ENCODE, MD5 and UUID."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from potok.sql.functions.function import Context, Overload, ScalarFunction, SqlFunction, each_row, takes
from potok.sql.functions.text.bytes import TO_BYTES, TO_TEXT, encoding_named, hex_to_bytes, lenient_base64_to_bytes
from potok.sql.types import BYTES, INT, VARCHAR

_ESCAPE: Final = re.compile(r"\\(?:u+\+?([0-9A-Fa-f]{4})|([0-3]?[0-7]{1,2})|(.)|$)", re.DOTALL)
_NAMED: Final = {"b": "\b", "n": "\n", "t": "\t", "f": "\f", "r": "\r"}


def _chr(code: int) -> str | None:
    """A lone surrogate is a code point, but not text."""
    return chr(code) if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else None


def _unescaped(found: re.Match[str]) -> str:
    unit, octal, sign = found.groups()
    if unit:
        return chr(int(unit, 16))
    if octal:
        return chr(int(octal, 8))
    if sign == "u":
        raise ValueError("\\u takes four hexadecimal digits")
    return _NAMED.get(sign, sign) if sign else ""


def _chr_of_text(text: str) -> str | None:
    if len(text) < 6 or not text.startswith("\\u"):
        return None
    units = _ESCAPE.sub(_unescaped, text)
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _hex_digits(text: str) -> str:
    """Strip the hexadecimal markers of 0xAB79 and X'AB79'."""
    if text.startswith("0x"):
        return ("0" if len(text) % 2 else "") + text[2:]
    if len(text) > 2 and text[:2] in ("x'", "X'") and text.endswith("'"):
        return text[2:-1]
    return text


_READ: Final[dict[str, Callable[[str], bytes]]] = {
    **TO_BYTES,
    "hex": lambda text: hex_to_bytes(_hex_digits(text)),
    "base64": lenient_base64_to_bytes,
}


def _encode(text: str, from_: str, to: str) -> str:
    source, target = encoding_named(from_), encoding_named(to)
    if source == target:
        raise ValueError(f"the text is in '{from_}' already: give two different encodings")
    encoded = TO_TEXT[target](_READ[source](text))
    return encoded.lower() if target == "hex" else encoded


def _new_uuids(_: Sequence[Any], rows: int, result: pa.DataType, __: Context) -> pa.Array:
    return pa.array([str(uuid.uuid4()) for _ in range(rows)], result)


def _uuid_of_bytes(data: bytes) -> str | None:
    return str(uuid.UUID(bytes=data)) if len(data) == 16 else None


FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    ScalarFunction(
        "CHR",
        "text",
        "The character with this Unicode code point, a number or text such as \\u004b; NULL if there is none.",
        (
            Overload("CHR(code INT)", takes(INT, result=VARCHAR), each_row(_chr)),
            Overload("CHR(code VARCHAR)", takes(VARCHAR, result=VARCHAR), each_row(_chr_of_text)),
        ),
        example="CHR(75)  -- 'K'",
    ),
    ScalarFunction(
        "ENCODE",
        "text",
        "A text that is in one encoding, in another: hex, utf8, ascii or base64. Hexadecimal digits may be marked: "
        "0xAB79, X'AB79'.",
        (
            Overload(
                "ENCODE(text VARCHAR, from VARCHAR, to VARCHAR)",
                takes(VARCHAR, VARCHAR, VARCHAR, result=VARCHAR),
                each_row(_encode),
            ),
        ),
        example="ENCODE('4578616d', 'hex', 'utf8')  -- 'Exam'",
    ),
    ScalarFunction(
        "MD5",
        "text",
        "The MD5 hash of the text in UTF-8, as 32 hexadecimal digits. It does not protect against forgery.",
        (
            Overload(
                "MD5(text VARCHAR)",
                takes(VARCHAR, result=VARCHAR),
                each_row(lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()),
            ),
        ),
        example="MD5('a')  -- '0cc175b9c0f1b6a831c399e269772661'",
    ),
    ScalarFunction(
        "UUID",
        "text",
        "A random UUID (version 4), another one for each row; of 16 bytes, the UUID that they are.",
        (
            Overload("UUID()", takes(result=VARCHAR), _new_uuids),
            Overload("UUID(bytes BYTES)", takes(BYTES, result=VARCHAR), each_row(_uuid_of_bytes)),
        ),
        deterministic=False,
        example="UUID()  -- '237e9877-e79b-42d4-a765-321741963000'",
    ),
)

"""Convert bytes to strings and back: hex, utf8, ascii and base64, as the JVM does."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Final

_HEX: Final = re.compile(r"[0-9A-Fa-f]*")
_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/]")

NAMES: Final = ("hex", "utf8", "ascii", "base64")


def encoding_named(name: str) -> str:
    """Return the encoding of a case-insensitive name."""
    if name.lower() not in NAMES:
        raise ValueError(f"unknown encoding '{name}': it must be one of {', '.join(NAMES)}")
    return name.lower()


def hex_to_bytes(text: str) -> bytes:
    if len(text) % 2 or not _HEX.fullmatch(text):
        raise ValueError(f"'{text}' is not hexadecimal: it takes two digits for each byte")
    return bytes.fromhex(text)


def base64_to_bytes(text: str) -> bytes:
    """Decode strictly: only the alphabet, and padding only at the end, where it may be missing."""
    missing = -len(text) % 4 if "=" not in text else 0
    return base64.b64decode(text + "=" * missing, validate=True)


def lenient_base64_to_bytes(text: str) -> bytes:
    """Decode leniently: ignore other characters, and accept the URL alphabet."""
    digits = _NOT_BASE64.sub("", text.partition("=")[0].replace("-", "+").replace("_", "/"))
    if len(digits) % 4 == 1:
        digits = digits[:-1]
    return base64.b64decode(digits + "=" * (-len(digits) % 4))


TO_BYTES: Final[dict[str, Callable[[str], bytes]]] = {
    "hex": hex_to_bytes,
    "utf8": lambda text: text.encode(),
    "ascii": lambda text: text.encode("ascii", "replace"),
    "base64": base64_to_bytes,
}

TO_TEXT: Final[dict[str, Callable[[bytes], str]]] = {
    "hex": lambda data: data.hex().upper(),
    "utf8": lambda data: data.decode("utf-8", "replace"),
    "ascii": lambda data: data.decode("ascii", "replace"),
    "base64": lambda data: base64.b64encode(data).decode(),
}

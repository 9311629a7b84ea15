"""Functions of bytes: conversion to strings in an encoding, and to numbers in a byte order."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.sql.functions.constants import constant
from potok.sql.functions.function import (
    Compute,
    Context,
    Overload,
    ScalarFunction,
    SqlFunction,
    each_row,
    takes,
)
from potok.sql.types import BIGINT, BYTES, DOUBLE, INT, VARCHAR, type_name

_ORDERS: Final = {"BIG_ENDIAN": ">", "LITTLE_ENDIAN": "<"}


def _to_bytes(text: str, encoding: str) -> bytes:
    return TO_BYTES[encoding_named(encoding)](text)


def _from_bytes(data: bytes, encoding: str) -> str:
    return TO_TEXT[encoding_named(encoding)](data)


def _order(name: str) -> str:
    if name.upper() not in _ORDERS:
        raise ValueError(f"unknown byte order '{name}': it must be BIG_ENDIAN or LITTLE_ENDIAN")
    return _ORDERS[name.upper()]


def _number(code: str) -> Compute:
    """Compute whole columns if all values have the right length and one byte order, else row by row."""
    size = struct.calcsize(code)

    def read(data: bytes, order: str = "BIG_ENDIAN") -> Any:
        if len(data) != size:
            raise ValueError(f"it takes {size} bytes, not {len(data)}")
        return struct.unpack(_order(order) + code, data)[0]

    by_row = each_row(read)

    def compute(arguments: Sequence[Any], rows: int, result: pa.DataType, context: Context) -> pa.Array:
        column = arguments[0]
        order = constant(arguments[1]) if len(arguments) > 1 else "BIG_ENDIAN"
        lengths = pc.min_max(pc.binary_length(column)).as_py()
        if order is None or order.upper() not in _ORDERS or set(lengths.values()) != {size}:
            return by_row(arguments, rows, result, context)
        packed = b"".join(column.drop_null().to_pylist())
        present = pa.array(np.frombuffer(packed, f"{_order(order)}{code}").astype(f"={code}"), result)
        if not column.null_count:
            return present
        mask = column.is_valid()
        return pc.replace_with_mask(pa.nulls(rows, result), mask, present)

    return compute


def _from_number(type_: pa.DataType, code: str, example: str) -> ScalarFunction:
    name = {INT: "INT_FROM_BYTES", BIGINT: "BIGINT_FROM_BYTES", DOUBLE: "DOUBLE_FROM_BYTES"}[type_]
    return ScalarFunction(
        name,
        "bytes",
        f"The {struct.calcsize(code)} bytes of a {type_name(type_)} as a number, in the byte order BIG_ENDIAN, the "
        "default, or LITTLE_ENDIAN; NULL if there are more bytes or fewer.",
        (
            Overload(
                f"{name}(bytes BYTES[, order VARCHAR])",
                takes(BYTES, VARCHAR, result=type_, optional=1),
                _number(code),
            ),
        ),
        example=example,
    )


FUNCTIONS: Final[tuple[SqlFunction, ...]] = (
    _from_number(BIGINT, "q", "BIGINT_FROM_BYTES(TO_BYTES('AAAAASoF8gA=', 'base64'))  -- 5000000000"),
    _from_number(DOUBLE, "d", "DOUBLE_FROM_BYTES(TO_BYTES('4080A6FD9BC9F582', 'hex'))  -- 532.8738323"),
    _from_number(INT, "i", "INT_FROM_BYTES(TO_BYTES('000007E5', 'hex'))  -- 2021"),
    ScalarFunction(
        "FROM_BYTES",
        "bytes",
        "Bytes as text in the encoding hex, utf8, ascii or base64. What is not text in utf8 or ascii becomes \ufffd.",
        (
            Overload(
                "FROM_BYTES(bytes BYTES, encoding VARCHAR)",
                takes(BYTES, VARCHAR, result=VARCHAR),
                each_row(_from_bytes),
            ),
        ),
        example="FROM_BYTES(TO_BYTES('hi', 'utf8'), 'hex')  -- '6869'",
    ),
    ScalarFunction(
        "TO_BYTES",
        "bytes",
        "The bytes that a text stands for in the encoding hex, utf8, ascii or base64.",
        (
            Overload(
                "TO_BYTES(text VARCHAR, encoding VARCHAR)",
                takes(VARCHAR, VARCHAR, result=BYTES),
                each_row(_to_bytes),
            ),
        ),
        example="TO_BYTES('6869', 'hex')",
    ),
)


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

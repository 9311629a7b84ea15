"""Read single values of the binary log whose form has no columns: decimals, times, addresses, binary JSON."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable

import orjson
from pymysqlreplication.json_binary import parse_json

_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""The bytes of up to nine decimal digits."""

_TIME_BIAS = 0x800000


def address(kind: str) -> Callable[[bytes], str]:
    """Read a UUID or an IP address, which the log has as a BINARY."""
    size = 4 if kind == "inet4" else 16

    def text(value: bytes) -> str:
        found = value.ljust(size, b"\0")
        return str(uuid.UUID(bytes=found)) if kind == "uuid" else _ip(found)

    return text


def _ip(data: bytes) -> str:
    found = ipaddress.ip_address(data)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(found) if mapped is None else f"::ffff:{mapped}"


def decimal_size(precision: int, scale: int) -> int:
    """Return the bytes of a decimal number."""
    whole, fraction = divmod(precision - scale, 9), divmod(scale, 9)
    return 4 * (whole[0] + fraction[0]) + _DIGIT_BYTES[whole[1]] + _DIGIT_BYTES[fraction[1]]


def decimal(precision: int, scale: int) -> Callable[[bytes], str]:
    """Read a decimal number: groups of nine digits, big-endian, with all bits inverted if it is negative."""
    whole, fraction = divmod(precision - scale, 9), divmod(scale, 9)
    layout = [(_DIGIT_BYTES[whole[1]], whole[1]), *[(4, 9)] * (whole[0] + fraction[0])]
    layout.append((_DIGIT_BYTES[fraction[1]], fraction[1]))
    ones = (1 << 8 * decimal_size(precision, scale)) - 1
    sign = (ones + 1) >> 1
    size = decimal_size(precision, scale)

    def text(value: bytes) -> str:
        number = int.from_bytes(value, "big")
        negative = not number & sign
        data = ((ones ^ number if negative else number) ^ sign).to_bytes(size, "big")
        parts, at = [], 0
        for count, width in layout:
            if count:
                parts.append(f"{int.from_bytes(data[at : at + count], 'big'):0{width}d}")
                at += count
        digits = "".join(parts)
        end = len(digits) - scale
        found = digits[:end].lstrip("0") or "0"
        if scale:
            found += f".{digits[end:]}"
        return f"-{found}" if negative else found

    return text


def time(scale: int) -> Callable[[bytes], str]:
    """Read a time, which may be negative: the bits of its fraction are then those of the whole number."""
    size = (scale + 1) // 2

    def text(value: bytes) -> str:
        number = int.from_bytes(value, "big") - (_TIME_BIAS << 8 * size)
        sign = "-" if number < 0 else ""
        number = abs(number)
        whole, fraction = number >> 8 * size, number & ((1 << 8 * size) - 1)
        found = f"{sign}{whole >> 12:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}"
        # The log has the digits of a second in pairs.
        return f"{found}.{fraction // 10 if scale % 2 else fraction:0{scale}d}" if scale else found

    return text


def json(value: bytes) -> bytes:
    """Read the binary form of JSON, which MySQL has and MariaDB does not."""
    return orjson.dumps(_plain(parse_json(value[0], value[1:]))) if value else b"null"


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | None) else str(value)

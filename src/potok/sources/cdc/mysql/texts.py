"""Read values from the rows of the binary log, and return them as the text that the server prints for them."""

from __future__ import annotations

import ipaddress
import uuid
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from struct import Struct
from typing import TypeAlias

import orjson
from pymysqlreplication.json_binary import parse_json

Reader: TypeAlias = "Callable[[bytes, int], tuple[bytes, int]]"
"""Reads the value at a position, and returns it with the position behind it."""

_FLOAT, _DOUBLE = Struct("<f"), Struct("<d")
_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""The bytes of up to nine decimal digits."""

_DATETIME_BIAS = 0x8000000000
_TIME_BIAS = 0x800000


def integer(size: int, *, unsigned: bool) -> Reader:
    read = int.from_bytes

    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        return b"%d" % read(data[at:end], "little", signed=not unsigned), end

    return reader


def real(size: int) -> Reader:
    unpack = (_FLOAT if size == 4 else _DOUBLE).unpack_from

    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        return repr(unpack(data, at)[0]).encode(), at + size

    return reader


def characters(length_size: int, encoding: str | None) -> Reader:
    """Read text behind its length; `encoding` is None if it is UTF-8 already."""
    length = int.from_bytes

    def utf8(data: bytes, at: int) -> tuple[bytes, int]:
        start = at + length_size
        end = start + length(data[at:start], "little")
        return data[start:end], end

    if encoding is None:
        return utf8

    def decoded(data: bytes, at: int) -> tuple[bytes, int]:
        found, end = utf8(data, at)
        return _decoded(found, encoding).encode(), end

    return decoded


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        if encoding != "cp1252":
            raise
        # The latin1 of the server has control characters where Windows has nothing.
        return "".join(bytes([each]).decode("cp1252", "replace").replace("\ufffd", chr(each)) for each in data)


def binary(length_size: int, padded: int = 0) -> Reader:
    """Read bytes behind their length as base64; the log leaves out the zeros at the end of a BINARY."""
    length = int.from_bytes

    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        start = at + length_size
        end = start + length(data[at:start], "little")
        return b64encode(data[start:end].ljust(padded, b"\0")), end

    return reader


def address(kind: str) -> Reader:
    """Read a UUID or an IP address, which the log has as a BINARY."""
    size = 4 if kind == "inet4" else 16

    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + 1 + data[at]
        found = data[at + 1 : end].ljust(size, b"\0")
        text = str(uuid.UUID(bytes=found)) if kind == "uuid" else _ip(found)
        return text.encode(), end

    return reader


def _ip(data: bytes) -> str:
    found = ipaddress.ip_address(data)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(found) if mapped is None else f"::ffff:{mapped}"


def decimal(precision: int, scale: int) -> Reader:
    """Read a decimal number: groups of nine digits, big-endian, with all bits inverted if it is negative."""
    whole, fraction = divmod(precision - scale, 9), divmod(scale, 9)
    groups = [(_DIGIT_BYTES[whole[1]], whole[1]), *[(4, 9)] * whole[0]]
    behind = [*[(4, 9)] * fraction[0], (_DIGIT_BYTES[fraction[1]], fraction[1])]
    size = sum(count for count, _ in (*groups, *behind))

    def digits(data: bytes, at: int, layout: list[tuple[int, int]]) -> tuple[str, int]:
        parts = []
        for count, width in layout:
            if count:
                parts.append(f"{int.from_bytes(data[at : at + count], 'big'):0{width}d}")
                at += count
        return "".join(parts), at

    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        found = bytearray(data[at:end])
        negative = not found[0] & 0x80
        if negative:
            found = bytearray(each ^ 0xFF for each in found)
        found[0] ^= 0x80
        before, place = digits(bytes(found), 0, groups)
        after, _ = digits(bytes(found), place, behind)
        text = before.lstrip("0") or "0"
        if scale:
            text += f".{after}"
        return (f"-{text}" if negative else text).encode(), end

    return reader


def year(data: bytes, at: int) -> tuple[bytes, int]:
    return b"%d" % (data[at] and data[at] + 1900), at + 1


def date(data: bytes, at: int) -> tuple[bytes, int]:
    end = at + 3
    days = int.from_bytes(data[at:end], "little")
    return b"%04d-%02d-%02d" % (days >> 9, days >> 5 & 15, days & 31), end


def date_time(scale: int) -> Reader:
    size = (scale + 1) // 2

    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        middle = at + 5
        bits = int.from_bytes(data[at:middle], "big") - _DATETIME_BIAS
        years, months = divmod(bits >> 22, 13)
        text = b"%04d-%02d-%02d %02d:%02d:%02d" % (
            years,
            months,
            bits >> 17 & 31,
            bits >> 12 & 31,
            bits >> 6 & 63,
            bits & 63,
        )
        end = middle + size
        return text + _fraction(int.from_bytes(data[middle:end], "big"), scale), end

    return reader


def timestamp(scale: int) -> Reader:
    """Read a time of UTC; zero is the date that does not exist."""
    size = (scale + 1) // 2

    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        middle = at + 4
        end = middle + size
        seconds = int.from_bytes(data[at:middle], "big")
        fraction = int.from_bytes(data[middle:end], "big")
        if not seconds and not fraction:
            text = "0000-00-00 00:00:00"
        else:
            text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
        return text.encode() + _fraction(fraction, scale), end

    return reader


def time(scale: int) -> Reader:
    """Read a time, which may be negative: the bits of its fraction are then those of the whole number."""
    size = (scale + 1) // 2

    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + 3 + size
        bits = int.from_bytes(data[at:end], "big") - (_TIME_BIAS << 8 * size)
        sign = b"-" if bits < 0 else b""
        bits = abs(bits)
        whole, fraction = bits >> 8 * size, bits & ((1 << 8 * size) - 1)
        text = b"%02d:%02d:%02d" % (whole >> 12, whole >> 6 & 63, whole & 63)
        return sign + text + _fraction(fraction, scale), end

    return reader


def _fraction(number: int, scale: int) -> bytes:
    """Return the digits of a second as the server prints them; the log has them in pairs."""
    if not scale:
        return b""
    return b".%0*d" % (scale, number // 10 if scale % 2 else number)


def label(size: int, labels: tuple[str, ...]) -> Reader:
    """Read a value of an ENUM; the number 0 is the empty text of a value that was not valid."""
    found = [b"", *(each.encode() for each in labels)]

    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        return found[int.from_bytes(data[at:end], "little")], end

    return reader


def labels_set(size: int, labels: tuple[str, ...]) -> Reader:
    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        bits = int.from_bytes(data[at:end], "little")
        return ",".join(each for number, each in enumerate(labels) if bits >> number & 1).encode(), end

    return reader


def bits(count: int) -> Reader:
    size = (count + 7) // 8

    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        return b"%d" % int.from_bytes(data[at:end], "big"), end

    return reader


def json(length_size: int) -> Reader:
    """Read the binary form of JSON, which MySQL has and MariaDB does not."""

    def reader(data: bytes, at: int) -> tuple[bytes, int]:
        start = at + length_size
        end = start + int.from_bytes(data[at:start], "little")
        found = data[start:end]
        return (orjson.dumps(_plain(parse_json(found[0], found[1:]))) if found else b"null"), end

    return reader


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | None) else str(value)

"""Split a body into records: one JSON document, a JSON array, NDJSON, or bytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import orjson

BODIES = ("json", "array", "ndjson", "raw")


class BadBody(Exception):
    """A body that cannot become records."""


class BodyTooLarge(Exception):
    """A body with more bytes than allowed, compressed or not."""


def decompressed(encoding: str, body: bytes, max_bytes: int) -> bytes:
    """Undo the Content-Encoding, without ever holding more than `max_bytes`."""
    for name in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
        if name in ("gzip", "x-gzip"):
            body = _inflated(body, 31, max_bytes)
        elif name == "deflate":
            body = _inflated(body, 15, max_bytes)
        elif name != "identity":
            raise BadBody(f'the content encoding "{name}" is not supported; use gzip, deflate or none')
    return body


def _inflated(body: bytes, window: int, max_bytes: int) -> bytes:
    found, rest = b"", body
    try:
        while rest:
            inflate = zlib.decompressobj(window)
            found += inflate.decompress(rest, max_bytes + 1 - len(found))
            if len(found) > max_bytes or inflate.unconsumed_tail:
                raise BodyTooLarge
            if not inflate.eof:
                raise BadBody("the compressed body is cut off")
            # gzip allows several members in a row.
            rest = inflate.unused_data
    except zlib.error as error:
        raise BadBody(f"the body cannot be decompressed: {error}") from error
    return found


def values_of(kind: str, body: bytes) -> list[bytes]:
    """Return the value of each record. A body is accepted as a whole or not at all."""
    if kind == "raw":
        return [body]
    if kind == "ndjson":
        return list(_lines(body))
    parsed = _parsed(body, "the body")
    if kind == "array" and isinstance(parsed, list):
        return elements_of(parsed)
    return [body]


def elements_of(found: list[object]) -> list[bytes]:
    """Return the elements of a parsed array. Raises `BadBody` for one that is nested too deeply to be written again."""
    values: list[bytes] = []
    for number, each in enumerate(found, 1):
        try:
            values.append(orjson.dumps(each))
        except orjson.JSONEncodeError as error:
            raise BadBody(f"element {number} cannot be written as JSON: {error}") from error
    return values


def _lines(body: bytes) -> Iterator[bytes]:
    for number, line in enumerate(body.split(b"\n"), 1):
        if stripped := line.strip():
            _parsed(stripped, f"line {number}")
            yield stripped


def _parsed(data: bytes, what: str) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadBody(f"{what} is not JSON: {error}") from error


def field_of(value: object, path: Sequence[str]) -> str | None:
    """Return a field of a parsed document as text, for keys and identifiers."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None or isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else orjson.dumps(value).decode()

"""Encode plain Python values as bytes if no schema is given."""

from __future__ import annotations

from decimal import Decimal

import orjson

from potok.errors import LogError


def to_bytes(value: object) -> bytes | None:
    """Encode None as None, bytes unchanged, str as UTF-8, anything else as JSON."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError as error:
        raise LogError(
            f"a value of type {type(value).__name__} cannot be written as JSON: {error}",
            hint="send bytes, text, or values that JSON supports: dicts, lists, numbers, dataclasses, datetimes",
        ) from error


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    as_dict = getattr(value, "asdict", None)
    if callable(as_dict):
        return as_dict()
    raise TypeError

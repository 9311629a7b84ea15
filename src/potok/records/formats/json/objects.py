"""Encode Python objects as JSON."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa

from potok.records.formats.format import Encoded

# orjson 3.13 writes 00:00:00.010 as 00:00:00.10000, so times are written here, together with instants.
_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_DATETIME
# orjson allocates a kilobyte for each text and shrinks it. A few hundred texts at a time fit into the cache, a
# hundred thousand do not: measured, eight times slower.
_TEXTS_AT_ONCE = 256


def dump_each(objects: list[Any], dump: Callable[[Any], bytes], reason: str) -> Encoded:
    """Return the text of each object, null for None; if `dump` raises a `TypeError`, an error that starts with
    `reason`.
    """
    errors: dict[int, str] = {}
    parts = []
    for start in range(0, len(objects), _TEXTS_AT_ONCE):
        texts: list[bytes | None] = []
        for row, obj in enumerate(objects[start : start + _TEXTS_AT_ONCE], start):
            try:
                texts.append(None if obj is None else dump(obj))
            except TypeError as error:
                texts.append(None)
                errors[row] = f"{reason}: {error}"
        parts.append(pa.array(texts, pa.binary()))
    return Encoded(pa.concat_arrays(parts) if parts else pa.array([], pa.binary()), errors)


def dumps(obj: Any) -> bytes:
    """Return the JSON text of an object; a `TypeError` names the nested object that has none.

    Decimals and bytes become text (base64), tuples and sets become lists, records and dataclasses become
    objects. A number that is not finite becomes null, because JSON has none.
    """
    try:
        return orjson.dumps(obj, plain, _OPTIONS)
    except TypeError:
        # Names that are not text are rare, and the option that allows them slows everything down.
        return orjson.dumps(obj, plain, _OPTIONS | orjson.OPT_NON_STR_KEYS)


def plain(obj: Any) -> Any:
    """Convert an object that orjson does not support to one that it does."""
    if isinstance(obj, Decimal):
        return str(obj)
    if isinstance(obj, dt.time):
        return obj.isoformat()
    if isinstance(obj, dt.datetime):
        # orjson crashes the process if a time zone raises; called from here, the exception is an error of the
        # object.
        obj.utcoffset()
    if isinstance(obj, dt.date):
        return orjson.Fragment(orjson.dumps(obj, option=orjson.OPT_UTC_Z))
    if isinstance(obj, bytes | bytearray | memoryview):
        return base64.b64encode(obj).decode()
    if isinstance(obj, set | frozenset):
        # A set has no order, and a record must always encode to the same bytes.
        return sorted(obj, key=repr)
    raise TypeError(f"an object of type {type(obj).__name__} has no JSON form")

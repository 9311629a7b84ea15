"""Keys as canonical JSON that can be read back: sorted names, no spaces, no negative zero."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import datetime as dt
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import orjson

from potok.records.formats.json.objects import plain

# Instants are passed to `_tagged` instead of becoming text, because text must stay text when it is read back.
_OPTIONS = (
    orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_NON_STR_KEYS
)
_TYPED_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z | orjson.OPT_PASSTHROUGH_DATETIME
_PLAIN = (str, int, bool)


def dump_typed_key(key: Any) -> bytes:
    """Return the JSON of a key whose declared type is needed to read it back."""
    return _canonical(key, plain, _TYPED_OPTIONS)


def dump_key(key: Any) -> bytes:
    """Return the JSON of a key that contains its type."""
    text = _canonical(key, _tagged, _OPTIONS)
    if text == b"null":
        raise TypeError("a number that is not finite has no JSON form")
    return text


def _canonical(key: Any, default: Callable[[Any], Any], options: int) -> bytes:
    text = orjson.dumps(key, default, options)
    return orjson.dumps(_without_minus_zero(key), default, options) if b"-0.0" in text else text


def load_key(text: bytes) -> Any:
    """Return the key that `dump_key` wrote; lists become tuples."""
    key = orjson.loads(text)
    return key if isinstance(key, _PLAIN) else _untagged(key)


def _tagged(obj: Any) -> Any:
    if isinstance(obj, Decimal):
        # All its digits, whatever the precision of this thread; equal decimals may have more or fewer zeros.
        return {"$decimal": str(obj.normalize(Context(prec=max(1, len(obj.as_tuple().digits))))) if obj else "0"}
    if isinstance(obj, bytes):
        return {"$bytes": base64.b64encode(obj).decode()}
    if isinstance(obj, dt.datetime):
        # An instant is the same key in every zone.
        return {"$datetime": (obj if obj.tzinfo is None else obj.astimezone(dt.UTC)).isoformat()}
    if isinstance(obj, dt.date):
        return {"$date": obj.isoformat()}
    if isinstance(obj, dt.time):
        return {"$time": obj.isoformat()}
    if isinstance(obj, frozenset | set):
        return sorted(obj, key=repr)
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        return {field.name: getattr(obj, field.name) for field in dataclasses.fields(obj)}
    raise TypeError(f"an object of type {type(obj).__name__} has no JSON form")


_READERS: dict[str, Callable[[str], Any]] = {
    "$decimal": Decimal,
    "$bytes": base64.b64decode,
    "$datetime": dt.datetime.fromisoformat,
    "$date": dt.date.fromisoformat,
    "$time": dt.time.fromisoformat,
}


def _untagged(obj: Any) -> Any:
    if isinstance(obj, list):
        return tuple(_untagged(item) for item in obj)
    if isinstance(obj, dict):
        if len(obj) == 1:
            ((name, text),) = obj.items()
            if name in _READERS:
                # A user's key may have such a name too.
                with contextlib.suppress(ValueError, TypeError, ArithmeticError):
                    return _READERS[name](text)
        return {name: _untagged(item) for name, item in obj.items()}
    return obj


def _without_minus_zero(obj: Any) -> Any:
    if isinstance(obj, float):
        return obj + 0.0
    if isinstance(obj, list | tuple):
        return [_without_minus_zero(item) for item in obj]
    if isinstance(obj, dict):
        return {name: _without_minus_zero(item) for name, item in obj.items()}
    return obj

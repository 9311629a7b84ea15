"""One text for one value, so that keys and values of any shape can be put into dicts and compared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def canonical(value: Any) -> str:
    """Equal texts for equal JSON values; 1, 1.0, true and "1" stay four different things.

    >>> canonical({"b": (1, 2.0), "a": None})
    '{"a": null, "b": [1, 2.0]}'
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def seen_key(data: bytes | None) -> Any:
    """A key in a topic: text is written as text, without quotes, and all else as JSON."""
    if data is None:
        return None
    text = data.decode(errors="replace")
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(parsed, str) else parsed


def seen_value(data: bytes | None) -> Any:
    """A value in a topic: JSON, or bytes in a form that no JSON has."""
    try:
        return None if data is None else json.loads(data)
    except ValueError:
        return {"not JSON": repr(data)}


def windowed_key(key: Any, start_ms: int, end_ms: int) -> dict[str, Any]:
    return {"key": key, "start": start_ms, "end": end_ms}


def compacted(changes: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """The last value of each key; null deletes."""
    rows: dict[str, Any] = {}
    for key, value in changes:
        rows.pop(canonical(key), None)
        if value is not None:
            rows[canonical(key)] = value
    return rows

"""Name a part of a message in an option: `header:NAME`, `body:FIELD.FIELD` or a property such as `message_id`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import orjson

from potok.errors import TopologyError
from potok.sources.bodies import field_of

_NAMED = re.compile(r"header:[\w.-]+|body:\w+(\.\w+)*")


def check_part(option: str, text: str | None, properties: Sequence[str], *, headers: bool = True) -> None:
    """Refuse an option that names no part of a message."""
    if text is None or text in properties:
        return
    if not _NAMED.fullmatch(text) or (text.startswith("header:") and not headers):
        allowed = [*properties, *(["header:NAME"] if headers else []), "body:FIELD"]
        raise TopologyError(f'{option} = "{text}" names no part of a message', hint=f"use one of {', '.join(allowed)}")


def part_of(
    text: str, body: bytes, headers: Mapping[str, object] = {}, properties: Mapping[str, object] = {}
) -> str | None:
    """Return a part of a message as text; None if it has no such part."""
    kind, colon, name = text.partition(":")
    if not colon:
        return _text(properties.get(kind))
    if kind == "header":
        return _text(headers.get(name))
    try:
        return field_of(orjson.loads(body), name.split("."))
    except orjson.JSONDecodeError:
        return None


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else str(value)

"""CloudEvents in records: structured mode in the value, binary mode in headers that start with `ce_`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from potok.events.envelope import BadEnvelope, Envelope, checked, read_dictionary, read_structured

STRUCTURED = "application/cloudevents+json"
PREFIX = "application/cloudevents"
CONTENT_TYPE = "content-type"

Headers = Sequence[dict[str, Any]] | None


def read_record(value: bytes | None, headers: Headers, envelope: str = "any") -> Envelope:
    """Return the event in a record. A content type that starts with `application/cloudevents` means structured mode."""
    texts = _texts(headers)
    kind = texts.get(CONTENT_TYPE, "").strip()
    if envelope == "dictionary" or (envelope == "any" and not kind.lower().startswith(PREFIX) and _plain(texts)):
        if value is None:
            raise BadEnvelope("a record without a value is not an event")
        return read_dictionary(value)
    if kind.lower().startswith(PREFIX):
        if kind.partition(";")[0].strip().lower() != STRUCTURED:
            raise BadEnvelope(f'events of type "{kind:.100}" cannot be read from a record; use {STRUCTURED}')
        if value is None:
            raise BadEnvelope("an event in structured mode has no value")
        return read_structured(value)
    attributes: dict[str, Any] = {name[3:]: text for name, text in texts.items() if name.startswith("ce_")}
    if not attributes:
        raise BadEnvelope(f'the record has neither "ce_" headers nor the content type {STRUCTURED}')
    if "datacontenttype" in attributes:
        raise BadEnvelope('header "ce_datacontenttype" is not allowed; binary mode uses "content-type"')
    if kind:
        attributes["datacontenttype"] = kind
    return checked(attributes, value)


def binary_headers(event: Envelope) -> list[dict[str, Any]]:
    """Return the headers of an event in binary mode."""
    named = {f"ce_{name}": _text(item) for name, item in event.attributes.items() if name != "datacontenttype"}
    kind = str(event.attributes.get("datacontenttype", "application/json"))
    texts = {"ce_specversion": "1.0", **named, CONTENT_TYPE: kind}
    return [{"name": name, "value": text.encode()} for name, text in texts.items()]


def own_headers(headers: Headers) -> list[dict[str, Any]]:
    """Return the headers of a record that are not part of an envelope."""
    return [h for h in headers or () if not h["name"].startswith("ce_") and h["name"] != CONTENT_TYPE]


def _plain(texts: dict[str, str]) -> bool:
    return not any(name.startswith("ce_") for name in texts)


def _texts(headers: Headers) -> dict[str, str]:
    found: dict[str, str] = {}
    for header in headers or ():
        name = header["name"]
        if name.lower() == CONTENT_TYPE or name.startswith("ce_"):
            name = CONTENT_TYPE if name.lower() == CONTENT_TYPE else name
            if name in found:
                raise BadEnvelope(f'header "{name:.50}" occurs twice')
            try:
                found[name] = (header["value"] or b"").decode()
            except UnicodeDecodeError as error:
                raise BadEnvelope(f'header "{name:.50}" is not UTF-8') from error
    return found


def _text(item: Any) -> str:
    return str(item).lower() if isinstance(item, bool) else str(item)

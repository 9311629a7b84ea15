"""CloudEvents in records: structured mode in the value, binary mode in headers that start with `ce_`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from potok.events.envelope import BadEnvelope, Envelope, checked, read_dictionary, read_structured

STRUCTURED = "application/cloudevents+json"
PREFIX = "application/cloudevents"
CONTENT_TYPE = "content-type"
_PREFIX = "ce_"

Headers = Sequence[dict[str, Any]] | None


def read_record(value: bytes | None, headers: Headers, envelope: str = "any") -> Envelope:
    """Return the event in a record. A content type that starts with `application/cloudevents` means structured mode."""
    kind = _content_type(headers)
    structured = kind.lower().startswith(PREFIX)
    plain = not any(header["name"].startswith(_PREFIX) for header in headers or ())
    if envelope == "dictionary" or (envelope == "any" and plain and not structured):
        if value is None:
            raise BadEnvelope("a record without a value is not an event")
        return read_dictionary(value)
    if structured:
        if not is_json_event(kind):
            raise BadEnvelope(f'events of type "{kind:.100}" cannot be read from a record; use {STRUCTURED} in UTF-8')
        if value is None:
            raise BadEnvelope("an event in structured mode has no value")
        return read_structured(value)
    attributes: dict[str, Any] = _attributes(headers)
    if not attributes:
        raise BadEnvelope(f'the record has neither "ce_" headers nor the content type {STRUCTURED}')
    if "datacontenttype" in attributes:
        raise BadEnvelope('header "ce_datacontenttype" is not allowed; binary mode uses "content-type"')
    if kind:
        attributes["datacontenttype"] = kind
    return checked(attributes, value)


def is_json_event(kind: str, media_type: str = STRUCTURED) -> bool:
    """Whether a content type is this media type in UTF-8."""
    found, *parameters = (part.strip().lower() for part in kind.split(";"))
    charsets = [part.partition("=")[2].strip('" ') for part in parameters if part.startswith("charset")]
    return found == media_type and all(charset in ("utf-8", "utf8", "us-ascii") for charset in charsets)


def binary_headers(event: Envelope) -> list[dict[str, Any]]:
    """Return the headers of an event in binary mode."""
    named = {f"ce_{name}": _text(item) for name, item in event.attributes.items() if name != "datacontenttype"}
    texts = {"ce_specversion": "1.0", **named}
    if "datacontenttype" in event.attributes:
        texts[CONTENT_TYPE] = str(event.attributes["datacontenttype"])
    return [{"name": name, "value": text.encode()} for name, text in texts.items()]


def own_headers(headers: Headers) -> list[dict[str, Any]]:
    """Return the headers of a record that are not part of an envelope."""
    return [h for h in headers or () if not h["name"].startswith(_PREFIX) and h["name"].lower() != CONTENT_TYPE]


def _content_type(headers: Headers) -> str:
    found = [header for header in headers or () if header["name"].lower() == CONTENT_TYPE]
    if len(found) > 1:
        raise BadEnvelope(f'header "{CONTENT_TYPE}" occurs twice')
    return "".join(_decoded(header) for header in found).strip()


def _attributes(headers: Headers) -> dict[str, str]:
    found: dict[str, str] = {}
    for header in headers or ():
        name = header["name"]
        if name.startswith(_PREFIX):
            if name.removeprefix(_PREFIX) in found:
                raise BadEnvelope(f'header "{name:.50}" occurs twice')
            found[name.removeprefix(_PREFIX)] = _decoded(header)
    return found


def _decoded(header: dict[str, Any]) -> str:
    try:
        return (header["value"] or b"").decode()
    except UnicodeDecodeError as error:
        raise BadEnvelope(f'header "{header["name"]:.50}" is not UTF-8') from error


def _text(item: Any) -> str:
    return str(item).lower() if isinstance(item, bool) else str(item)

"""CloudEvents in HTTP requests: binary mode in `ce-` headers, structured and batched mode in the body."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from potok.events.envelope import BadEnvelope, Envelope, checked, read_structured
from potok.events.kafka_binding import CONTENT_TYPE, PREFIX, STRUCTURED, binary_headers, is_json_event

BATCH = "application/cloudevents-batch+json"
_PREFIX = "ce-"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


class UnknownMediaType(ValueError):
    """A request whose content type is neither a known event format nor that of an event in binary mode."""


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event, and the value and headers of the record that holds it in the same mode."""

    envelope: Envelope
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def read_request(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> list[ReceivedEvent]:
    """Return the events of a request. The content type decides the mode, as the HTTP binding says.

    Raises:
        UnknownMediaType: The event format is not JSON, or the request is not an event at all.
        BadEnvelope: The event breaks a rule.
    """
    listed = [(name.decode("latin-1").lower(), value) for name, value in headers]
    kinds = [value.decode("latin-1").strip() for name, value in listed if name == CONTENT_TYPE]
    if len(kinds) > 1:
        raise BadEnvelope('header "content-type" occurs twice')
    kind = "".join(kinds)
    if kind.lower().startswith(PREFIX):
        if is_json_event(kind, BATCH):
            return _batch(body)
        if not is_json_event(kind):
            raise UnknownMediaType(f'events of type "{kind:.100}" cannot be read')
        return [ReceivedEvent(read_structured(body), body, _structured(kind))]
    texts = _attributes(listed)
    if not texts:
        raise UnknownMediaType(f'content of type "{kind:.100}" without "ce-" headers is not an event')
    if "datacontenttype" in texts:
        raise BadEnvelope('header "ce-datacontenttype" is not allowed; binary mode uses "content-type"')
    attributes: dict[str, Any] = dict(texts)
    if kind:
        attributes["datacontenttype"] = kind
    event = checked(attributes, body or None)
    return [ReceivedEvent(event, body or None, tuple((h["name"], h["value"]) for h in binary_headers(event)))]


def _batch(body: bytes) -> list[ReceivedEvent]:
    try:
        parts = msgspec.json.decode(body, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadEnvelope(f"the batch is not a JSON array: {error}") from error
    found = []
    for number, part in enumerate(parts):
        value = bytes(part)
        try:
            found.append(ReceivedEvent(read_structured(value), value, _structured(STRUCTURED)))
        except BadEnvelope as error:
            raise BadEnvelope(f"event {number + 1} of the batch: {error}") from error
    return found


def _structured(kind: str) -> tuple[tuple[str, bytes], ...]:
    return ((CONTENT_TYPE, kind.encode()),)


def _attributes(headers: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        if not name.startswith(_PREFIX):
            continue
        if (attribute := name.removeprefix(_PREFIX)) in found:
            raise BadEnvelope(f'header "{name:.50}" occurs twice')
        found[attribute] = decoded_header(value, name)
    return found


def decoded_header(value: bytes, name: str) -> str:
    """Return the text of a header: quoted parts without their quotes, then decoded once from percent-encoding."""
    text = value.decode("latin-1").strip(" \t")
    if '"' in text:
        if '"' in _QUOTED.sub("", text):
            raise BadEnvelope(f'header "{name:.50}" has an open double quote')
        text = _QUOTED.sub(lambda found: re.sub(r"\\(.)", r"\1", found[1]), text)
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeDecodeError as error:
        raise BadEnvelope(f'header "{name:.50}" is not UTF-8') from error

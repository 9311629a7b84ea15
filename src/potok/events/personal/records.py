"""Encrypt the personal fields of events in records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from potok.events.envelope import ENCRYPTED, Envelope, data_object, write_dictionary, write_structured
from potok.events.event_type import EventType
from potok.events.kafka_binding import binary_headers, is_structured, own_headers, read_record
from potok.events.personal.key_store import KeyStore, SubjectKey

Headers = list[dict[str, Any]] | None


def seal_records(
    values: Sequence[bytes], headers: Sequence[Headers], types: Sequence[EventType], topic: str, keys: KeyStore
) -> tuple[list[bytes], list[Headers]]:
    """Return the values and headers of records, with the personal fields of these event types encrypted, or null for
    subjects that were forgotten. Keys are looked up once for all records.
    """
    known = {type_.name: type_.personal for type_ in types}
    events: dict[int, tuple[Envelope, dict[str, Any]]] = {}
    for row, (value, own) in enumerate(zip(values, headers, strict=True)):
        event = read_record(value, own)
        data = data_object(event)
        if event.type in known and any(data.get(field) is not None for field in known[event.type]):
            events[row] = event, data
    subjects = {
        str(data[subject])
        for event, data in events.values()
        for field, subject in known[event.type].items()
        if data.get(field) is not None
    }
    found = keys.for_writing(subjects, topic)
    sealed, written = list(values), list(headers)
    for row, (event, data) in events.items():
        sealed[row], written[row] = _enveloped(_sealed(event, data, known[event.type], found), headers[row])
    return sealed, written


def _sealed(event: Envelope, data: dict[str, Any], personal: dict[str, str], keys: dict[str, SubjectKey]) -> Envelope:
    from potok.events.personal.encryption import encrypt

    tokens: dict[str, str | None] = {}
    for field, subject in personal.items():
        if data.get(field) is not None:
            text = orjson.dumps({"value": data[field]})
            tokens[field] = encrypt(keys[str(data[subject])], text, event, field)
    encrypted = [field for field, token in tokens.items() if token is not None]
    noted = {ENCRYPTED: " ".join(encrypted)} if encrypted else {}
    return Envelope({**event.attributes, **noted}, orjson.dumps({**data, **tokens}), event.metadata)


def _enveloped(event: Envelope, headers: Headers) -> tuple[bytes, Headers]:
    """Return an event in the envelope that it had."""
    if is_structured(headers):
        return write_structured(event), headers
    if any(one["name"].startswith("ce_") for one in headers or ()):
        assert isinstance(event.data, bytes)
        return event.data, [*own_headers(headers), *binary_headers(event)]
    return write_dictionary(event), headers

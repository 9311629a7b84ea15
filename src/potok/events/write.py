"""Encode values as events: deterministic ids, inherited correlation, and one of the envelopes."""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from potok.errors import SetupError
from potok.events.envelope import VERSION, Envelope, write_dictionary, write_structured
from potok.events.event_type import TYPE_FIELD, EventType, event_name
from potok.events.kafka_binding import CONTENT_TYPE, STRUCTURED, binary_headers, own_headers
from potok.events.personal.fields import Sealed, sealed
from potok.events.personal.key_store import KeyStore
from potok.events.read import CAUSE, CORRELATION
from potok.records.formats.registry import format_named
from potok.records.rows import column_of, rows_of

EnvelopeName = Literal["cloudevents", "cloudevents_binary", "dictionary"]
ENVELOPES = ("cloudevents", "cloudevents_binary", "dictionary")

_EARLIEST_MS, _LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "potok:event")


@dataclass(frozen=True, slots=True)
class EventWriting:
    """How a sink writes events: the envelope, the types they may have, and the `source` attribute."""

    envelope: str
    types: tuple[EventType, ...]
    source: str
    sink: str
    """What distinguishes the sinks of a query: its topic, and its number among those that write to that topic."""


@dataclass(slots=True)
class Written:
    """Values and headers of records, null where a row is in `errors`."""

    values: pa.Array
    headers: list[list[dict[str, Any]]]
    errors: dict[int, str]


def event_id(query: str, sink: str, *position: object) -> str:
    """Return the id of an event: the same for the same input record, whenever and wherever it is computed."""
    # As uuid.uuid5, in a third of its time.
    name = "\x1f".join(map(str, (query, sink, *position)))
    digest = bytearray(hashlib.sha1(NAMESPACE.bytes + name.encode(), usedforsecurity=False).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x50, digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def write_events(
    column: Any,
    headers: list[Any],
    times: list[int],
    how: EventWriting,
    identify: Callable[[int, bytes], tuple[str, str]],
    keys: KeyStore | None = None,
) -> Written:
    """Encode values as events, their personal fields encrypted. `identify` returns the id and the sequence of a row,
    given its data without personal fields.
    """
    rows = rows_of(column)
    values: list[bytes | None] = [None] * len(rows)
    results: list[list[dict[str, Any]]] = [[] for _ in rows]
    errors: dict[int, str] = {}
    encodings: dict[int, tuple[EventType, bytes, Sealed | None, int]] = {}
    for type_ in how.types:
        mine = [row for row, value in enumerate(rows) if _type_of(value, how) == type_.name]
        fitted = column_of([rows[row] for row in mine], type_.schema)
        private = None
        if type_.personal:
            if keys is None:
                raise SetupError("there is no key store for personal fields", hint="set personal_keys")
            private = sealed(fitted.column, type_, keys, how.sink.rpartition("#")[0])
        encoded = format_named("json").encode(fitted.column if private is None else private.column, type_.schema)
        for number, data in enumerate(encoded.values.to_pylist()):
            row = mine[number]
            if number in fitted.errors or number in encoded.errors:
                errors[row] = f"data of {type_.name}: {fitted.errors.get(number) or encoded.errors[number]}"
            elif not _EARLIEST_MS <= times[row] <= _LATEST_MS:
                errors[row] = f"the timestamp {times[row]} is not in the years 1 to 9999"
            elif private is not None and (unsealed := private.error(number)) is not None:
                errors[row] = unsealed
            else:
                encodings[row] = type_, data, private, number
    # In the order of the rows: the number of a record among those of its input record is part of its id.
    for row, value in enumerate(rows):
        if row in encodings:
            type_, data, private, number = encodings[row]
            id_, sequence = identify(row, data)
            event = Envelope(_attributes(type_, id_, sequence, times[row], headers[row], how), data)
            if private is not None:
                event = private.encrypt(number, event)
            values[row], results[row] = _enveloped(event, headers[row], how.envelope)
        elif row not in errors:
            errors[row] = _unknown(value, how)
    return Written(pa.array(values, pa.binary()), results, errors)


def _type_of(value: Any, how: EventWriting) -> str | None:
    if value is None:
        return None
    own = event_name(value)
    if own is not None and any(type_.name == own for type_ in how.types):
        return own
    if len(how.types) == 1:
        return how.types[0].name
    found = value.get(TYPE_FIELD) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def _unknown(value: Any, how: EventWriting) -> str:
    if value is None:
        return "a null value is not an event"
    known = ", ".join(type_.name for type_ in how.types)
    return f'"{_type_of(value, how)}" in field "{TYPE_FIELD}" is not an event type of this sink; it writes {known}'


def _attributes(
    type_: EventType, id_: str, sequence: str, time_ms: int, headers: Any, how: EventWriting
) -> dict[str, Any]:
    notes = {
        header["name"]: header["value"].decode() for header in headers or () if header["name"] in (CAUSE, CORRELATION)
    }
    at = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=time_ms)
    attributes: dict[str, Any] = {
        "id": id_,
        "source": how.source,
        "type": type_.name,
        "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        VERSION: type_.version,
        "correlationid": notes.get(CORRELATION, id_),
    }
    if CAUSE in notes:
        attributes["causationid"] = notes[CAUSE]
    return attributes | ({"sequence": sequence} if sequence else {})


def _enveloped(event: Envelope, headers: Any, envelope: str) -> tuple[bytes, list[dict[str, Any]]]:
    own = [header for header in own_headers(headers) if header["name"] not in (CAUSE, CORRELATION)]
    if envelope == "dictionary":
        return write_dictionary(event), own
    if envelope == "cloudevents_binary":
        return event.data, [*own, *binary_headers(event)]
    return write_structured(event), [*own, {"name": CONTENT_TYPE, "value": STRUCTURED.encode()}]

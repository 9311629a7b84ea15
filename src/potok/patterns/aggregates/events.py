"""The events of an aggregate as records: written with their envelope, and read back as instances of their classes."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from potok.events.envelope import VERSION, BadEnvelope, Envelope, data_object, write_dictionary, write_structured
from potok.events.event_type import FORGOTTEN, EventType, event_name, upcasted
from potok.events.kafka_binding import CONTENT_TYPE, STRUCTURED, binary_headers, read_record
from potok.events.personal.fields import decrypted, encrypted_fields
from potok.events.personal.key_store import KeyStore
from potok.patterns.aggregates.data import BadData, Json, MaskedJson
from potok.patterns.aggregates.definition import AppliedEvent, Definition
from potok.patterns.aggregates.messages import COMMAND, COMMAND_ID, WRITER

Headers = tuple[tuple[str, bytes], ...]

_FORGOTTEN = FORGOTTEN.encode()
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]*")
"""Ids that a URI holds as they are."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Event(NamedTuple):
    """An event of an aggregate: its instance, and what its envelope says. `sequence` is 0 if it has none.

    Personal fields are None in the instance and the data, so state and results do not hold them, and are the same
    before and after a subject was forgotten. They are in `whole`, which is written, and in `revealed`, for histories.
    """

    type: EventType
    instance: Any
    data: bytes
    id: str
    sequence: int
    at: int
    applied: AppliedEvent
    whole: bytes = b""
    revealed: Any = None

    def rendered(self) -> dict[str, Any]:
        """Return the event as results list it, for `Result.to_bytes`."""
        return {
            "id": self.id,
            "type": self.type.name,
            "event_version": self.type.version,
            "sequence": self.sequence,
            "data": orjson.Fragment(self.data),
        }


class EventRecord(NamedTuple):
    """A record of the events topic: its events are none if its upcast drops it, and several if it is split."""

    id: str
    sequence: int
    at: int
    events: list[Event]


class EventWriter:
    """Write the events of one aggregate of a query."""

    def __init__(self, definition: Definition, source: str, envelope: str, writer: bytes) -> None:
        self._events, self._envelope = definition.events, envelope
        self._source = f"/potok/{quote(source, safe='')}/{quote(definition.name, safe='')}/"
        self._writer = writer
        self._codecs = {name: Json(event.cls) for name, event in definition.events.items()}
        self._masks = _masks(definition)
        self._names = {event.cls: name for name, event in definition.events.items()}

    def of_instance(self, instance: Any, id_: str, sequence: int, at: int) -> Event:
        """Return the event that a command yielded, as it is read back; raise if it is none, or does not fit."""
        name = self._names.get(type(instance)) or event_name(instance)
        if name is None or name not in self._events:
            known = ", ".join(self._events)
            raise TypeError(f"a command yields events that the aggregate applies ({known}), not {instance!r:.200}")
        applied, codec = self._events[name], self._codecs[name]
        data = codec.encode(instance)
        read = codec.decode(data)
        if name not in self._masks:
            return Event(applied.type, read, data, id_, sequence, at, applied, data)
        for field, subject in applied.type.personal.items():
            if getattr(read, field) is not None and getattr(read, subject) is None:
                raise ValueError(f'personal field "{field}" of {name} has a value, and "{subject}" is None')
        masked = self._masks[name].without_personal(data)
        return Event(applied.type, self._masks[name].decode(masked), masked, id_, sequence, at, applied, data)

    def record(
        self, event: Event, aggregate_id: str, correlation: str, command_id: str, command: str
    ) -> tuple[bytes, dict[str, bytes]]:
        """Return the value and the headers of the record of an event."""
        attributes: dict[str, Any] = {
            "id": event.id,
            # A sequence is that of a source, so each aggregate is a source of its own.
            "source": self._source + (aggregate_id if _PLAIN.fullmatch(aggregate_id) else quote(aggregate_id, safe="")),
            "type": event.type.name,
            "time": _time(event.at),
            "datacontenttype": "application/json",
            VERSION: event.type.version,
            "correlationid": correlation,
            "causationid": command_id,
            "sequence": f"{event.sequence:010d}",  # ordered as text
        }
        envelope = Envelope(attributes, event.whole)
        headers = {WRITER: self._writer, COMMAND_ID: command_id.encode(), COMMAND: command.encode()}
        if self._envelope == "dictionary":
            return write_dictionary(envelope), headers
        if self._envelope == "cloudevents_binary":
            return event.whole, headers | {one["name"]: one["value"] for one in binary_headers(envelope)}
        return write_structured(envelope), headers | {CONTENT_TYPE: STRUCTURED.encode()}


class EventReader:
    """Read the events of one aggregate. With a key store, their personal fields are revealed."""

    def __init__(self, definition: Definition, keys: KeyStore | None = None) -> None:
        self._events, self._keys = definition.events, keys
        self._masks = _masks(definition)
        self._codecs: dict[str, Json | MaskedJson] = {
            name: self._masks.get(name) or Json(event.cls) for name, event in definition.events.items()
        }

    def is_forgotten(self, value: bytes | None, headers: Headers) -> bool:
        """Whether a record says that a subject was forgotten."""
        named = _FORGOTTEN in (value or b"") or any(item == _FORGOTTEN for _, item in headers)
        return named and self._envelope(value, headers).type == FORGOTTEN

    def _envelope(self, value: bytes | None, headers: Headers) -> Envelope:
        return read_record(value, [{"name": name, "value": item} for name, item in headers])

    def read(self, value: bytes | None, headers: Headers, at: int) -> EventRecord:
        """Return the events in a record. Raise ValueError for what is not an event of the aggregate."""
        envelope = self._envelope(value, headers)
        applied = self._events.get(envelope.type)
        if applied is None:
            known = ", ".join(self._events)
            raise BadEnvelope(
                f'unknown event type "{envelope.type:.200}": the aggregate applies {known}; add a method with '
                "@potok.applies"
            )
        type_, time_ms = applied.type, envelope.time_ms
        codec, sequence = self._codecs[type_.name], _sequence(envelope)
        found = EventRecord(str(envelope.attributes["id"]), sequence, at if time_ms is None else time_ms, [])
        data = data_object(envelope)
        if isinstance(data, dict):
            data = {**data, **dict.fromkeys(encrypted_fields(envelope))}
        for encoded in _current(envelope, type_, data):
            mask = self._masks.get(type_.name)
            masked = encoded if mask is None else mask.without_personal(encoded)
            instance = _read(codec, masked, type_.name)
            found.events.append(
                Event(type_, instance, masked, found.id, sequence, found.at, applied, revealed=instance)
            )
        if self._keys is not None and type_.name in self._masks:
            return found._replace(events=self._revealed(envelope, found.events, self._keys))
        return found

    def _revealed(self, envelope: Envelope, events: list[Event], keys: KeyStore) -> list[Event]:
        """Return events with their personal fields, as far as their keys are there."""
        errors: dict[int, str] = {}
        data = decrypted([(0, envelope)], keys, errors).get(0, data_object(envelope))
        if errors:
            raise BadEnvelope(errors[0])
        rendered = _current(envelope, events[0].type, data) if events else []
        if len(rendered) != len(events):
            return events
        return [
            event._replace(revealed=_read(self._codecs[event.type.name], one, event.type.name))
            for event, one in zip(events, rendered, strict=True)
        ]

    def stored(self, name: str, data: bytes, at: int) -> Event:
        """Return an event that was read before, from the data that it had then."""
        applied = self._events[name]
        return Event(applied.type, _read(self._codecs[name], data, name), data, "", 0, at, applied)


def _masks(definition: Definition) -> dict[str, MaskedJson]:
    return {
        name: MaskedJson(one.cls, one.type.personal) for name, one in definition.events.items() if one.type.personal
    }


def _current(envelope: Envelope, type_: EventType, data: Any) -> list[bytes]:
    """Return the data of an event in the current version of its type."""
    if envelope.version == type_.version:
        return [orjson.dumps({} if data is None else data)]
    return [orjson.dumps(one) for one in upcasted(data or {}, envelope.version, type_)]


@lru_cache(maxsize=1_000)
def _time(at: int) -> str:
    return (_EPOCH + dt.timedelta(milliseconds=at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read(codec: Json | MaskedJson, data: bytes, name: str) -> Any:
    try:
        return codec.decode(data)
    except BadData as error:
        raise BadEnvelope(f"data of {name}: {error}") from error


def _sequence(envelope: Envelope) -> int:
    """Return the number that an aggregate gave its event; 0 if it has none."""
    text = str(envelope.attributes.get("sequence") or _metadata(envelope.metadata))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _metadata(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("sequence", ""))

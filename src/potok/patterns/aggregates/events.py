"""The events of an aggregate as records: written with their envelope, and read back as instances of their classes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from potok.events.envelope import VERSION, BadEnvelope, Envelope, data_object, write_dictionary, write_structured
from potok.events.event_type import EventType, event_name, upcasted
from potok.events.kafka_binding import CONTENT_TYPE, STRUCTURED, binary_headers, read_record
from potok.patterns.aggregates.data import BadData, Json
from potok.patterns.aggregates.definition import AppliedEvent, Definition
from potok.patterns.aggregates.messages import COMMAND, COMMAND_ID, WRITER

Headers = tuple[tuple[str, bytes], ...]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Event(NamedTuple):
    """An event of an aggregate: its instance, and what its envelope says. `sequence` is 0 if it has none."""

    type: EventType
    instance: Any
    data: bytes
    id: str
    sequence: int
    at: int
    applied: AppliedEvent

    def shown(self) -> dict[str, Any]:
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
        self._events, self._source, self._envelope = definition.events, f"/potok/{quote(source)}", envelope
        self._writer = writer
        self._codecs = {name: Json(event.cls) for name, event in definition.events.items()}
        self._names = {event.cls: name for name, event in definition.events.items()}

    def of_instance(self, instance: Any, id_: str, sequence: int, at: int) -> Event:
        """Return the event that a command yielded, as it is read back; raise if it is none, or does not fit."""
        name = self._names.get(type(instance)) or event_name(instance)
        if name is None or name not in self._events:
            known = ", ".join(self._events)
            raise TypeError(f"a command yields events that the aggregate applies ({known}), not {instance!r:.200}")
        applied, codec = self._events[name], self._codecs[name]
        data = codec.encode(instance)
        return Event(applied.type, codec.decode(data), data, id_, sequence, at, applied)

    def record(self, event: Event, correlation: str, command_id: str, command: str) -> tuple[bytes, dict[str, bytes]]:
        """Return the value and the headers of the record of an event."""
        attributes: dict[str, Any] = {
            "id": event.id,
            "source": self._source,
            "type": event.type.name,
            "time": _time(event.at),
            "datacontenttype": "application/json",
            VERSION: event.type.version,
            "correlationid": correlation,
            "causationid": command_id,
            "sequence": str(event.sequence),
            "sequencetype": "Integer",
        }
        envelope = Envelope(attributes, event.data)
        headers = {WRITER: self._writer, COMMAND_ID: command_id.encode(), COMMAND: command.encode()}
        if self._envelope == "dictionary":
            return write_dictionary(envelope), headers
        if self._envelope == "cloudevents_binary":
            return event.data, headers | {one["name"]: one["value"] for one in binary_headers(envelope)}
        return write_structured(envelope), headers | {CONTENT_TYPE: STRUCTURED.encode()}


class EventReader:
    """Read the events of one aggregate."""

    def __init__(self, definition: Definition) -> None:
        self._events = definition.events
        self._codecs = {name: Json(event.cls) for name, event in definition.events.items()}

    def read(self, value: bytes | None, headers: Headers, at: int) -> EventRecord:
        """Return the events in a record. Raise ValueError for what is not an event of the aggregate."""
        envelope = read_record(value, [{"name": name, "value": item} for name, item in headers])
        applied = self._events.get(envelope.type)
        if applied is None:
            known = ", ".join(self._events)
            raise BadEnvelope(
                f'unknown event type "{envelope.type:.200}": the aggregate applies {known}; add a method with '
                "@potok.applies"
            )
        type_, time_ms = applied.type, envelope.time_ms
        data = data_object(envelope)
        versions = [data] if envelope.version == type_.version else upcasted(data or {}, envelope.version, type_)
        codec, sequence = self._codecs[type_.name], _sequence(envelope)
        found = EventRecord(str(envelope.attributes["id"]), sequence, at if time_ms is None else time_ms, [])
        for one in versions:
            encoded = orjson.dumps({} if one is None else one)
            instance = _read(codec, encoded, type_.name)
            found.events.append(Event(type_, instance, encoded, found.id, sequence, found.at, applied))
        return found

    def stored(self, name: str, data: bytes, at: int) -> Event:
        """Return an event that was read before, from the data that it had then."""
        applied = self._events[name]
        return Event(applied.type, _read(self._codecs[name], data, name), data, "", 0, at, applied)


@lru_cache(maxsize=1_000)
def _time(at: int) -> str:
    return (_EPOCH + dt.timedelta(milliseconds=at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read(codec: Json, data: bytes, name: str) -> Any:
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

"""From a record to the events in it, by the words of CloudEvents 1.0: one record at a time."""

from __future__ import annotations

import base64
import datetime as dt
import json
import uuid
from dataclasses import dataclass
from typing import Any

from potok.events.event_type import EventType, EventTypes
from tests.oracle.decode import Undecodable, fit_struct
from tests.oracle.records import Input


@dataclass(frozen=True)
class Told:
    """An event as its envelope tells it. `parts` are its data in the current version: none of one that was dropped."""

    id: str
    correlation: str
    at_ms: int | None
    parts: list[Any]


def events_in(read: Input, types: EventTypes) -> Told:
    """The event of a record, its data upcast and fitted."""
    reported = _envelope(read, types.envelope)
    for name in ("id", "type", "source"):
        if not isinstance(reported.get(name), str) or not reported[name]:
            raise Undecodable(f"{name} is missing")
    known = {type_.name: type_ for type_ in types.types}
    at_ms = _instant_ms(reported["time"]) if reported.get("time") is not None else None
    if reported["type"] not in known:
        if types.selects:
            return Told(reported["id"], "", at_ms, [])
        raise Undecodable(f"{reported['type']} is not read here")
    type_, data = known[reported["type"]], reported.get("data")
    parts = _upcast([{} if data is None else data], _version(reported), type_)
    fitted = [fit_struct(part, type_.schema) for part in parts]
    if len(types.types) > 1:
        fields = {field.name for each in types.types for field in each.schema.fields}
        fitted = [{"event_type": type_.name, **dict.fromkeys(fields), **part} for part in fitted]
    return Told(reported["id"], reported.get("correlationid", reported["id"]), at_ms, fitted)


def _envelope(read: Input, envelope: str) -> dict[str, Any]:
    headers = {name: value.decode() for name, value in read.headers}
    kind = headers.get("content-type", "")
    if kind.startswith("application/cloudevents+json"):
        found = {name: item for name, item in _json(read.value).items() if item is not None}
        if "data_base64" in found:
            found["data"] = json.loads(base64.b64decode(found["data_base64"]))
    elif any(name.startswith("ce_") for name in headers) or envelope == "cloudevents":
        found = {name[3:]: text for name, text in headers.items() if name.startswith("ce_")}
        found["data"] = None if read.value is None else json.loads(read.value)
    else:
        plain = _json(read.value)
        names = {"event_id": "id", "event_type": "type", "timestamp": "time", "correlation_id": "correlationid"}
        found = {names.get(name, name): item for name, item in plain.items()}
        found = {"source": "unknown", "eventversion": found.get("event_version") or "1", "specversion": "1.0", **found}
    if found.get("specversion") != "1.0":
        raise Undecodable("not CloudEvents 1.0")
    return found


def _json(value: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(value or b"")
    except ValueError as error:
        raise Undecodable(str(error)) from error
    if not isinstance(found, dict):
        raise Undecodable("not an object")
    return found


def _version(reported: dict[str, Any]) -> int:
    try:
        return int(str(reported.get("eventversion", 1)).split(".")[0])
    except ValueError as error:
        raise Undecodable("not a version") from error


def _upcast(parts: list[Any], version: int, type_: EventType) -> list[Any]:
    if version > type_.version:
        raise Undecodable("newer than the program")
    upcasters = dict(type_.upcasters)
    for at in range(version, type_.version):
        if at not in upcasters:
            raise Undecodable(f"a gap at version {at}")
        made: list[Any] = []
        for part in parts:
            try:
                result = upcasters[at].callable(part)
            except Exception as error:
                raise Undecodable(str(error)) from error
            made += [] if result is None else result if isinstance(result, list) else [result]
        parts = made
    return parts


def _instant_ms(text: str) -> int:
    try:
        at = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise Undecodable(str(error)) from error
    return (at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


def event_id(query: str, sink: str, *place: object) -> str:
    """The id of an event that a query writes, from the position of its input record, its key and its number there."""
    namespace = uuid.uuid5(uuid.NAMESPACE_URL, "potok:event")
    return str(uuid.uuid5(namespace, "\x1f".join(str(part) for part in (query, sink, *place))))

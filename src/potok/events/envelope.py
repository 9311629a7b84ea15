"""The attributes of one event, and the codecs of its two envelopes."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

NAME = re.compile(r"^[a-z0-9]+$")
REQUIRED = ("id", "source", "type")
VERSION = "eventversion"
"""The extension attribute that holds the version of the data."""

_DICTIONARY = {
    "event_id": "id",
    "event_type": "type",
    "source": "source",
    "timestamp": "time",
    "correlation_id": "correlationid",
}


class BadEnvelope(ValueError):
    """A record that is not an event; the text says why."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One event: its CloudEvents attributes (`specversion` left out), and its data as JSON bytes or as an object."""

    attributes: Mapping[str, Any]
    data: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return str(self.attributes["type"])

    @property
    def version(self) -> int:
        """The version of the data; 1 unless said. Only the part before the point counts: "2.1" is 2."""
        given = str(self.attributes.get(VERSION, "1"))
        whole = given.partition(".")[0]
        if not (whole.isascii() and whole.isdigit()) or int(whole) < 1:
            raise BadEnvelope(f'"{given}" is not the version of an event')
        return int(whole)

    @property
    def time_ms(self) -> int | None:
        """The time of the event in milliseconds since 1970, if it has one."""
        text = self.attributes.get("time")
        if text is None:
            return None
        try:
            at = dt.datetime.fromisoformat(str(text).upper())
        except ValueError:
            at = None
        if at is None or at.tzinfo is None:
            raise BadEnvelope(f'attribute "time" is not a timestamp of RFC 3339: "{text!s:.100}"')
        return (at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


def checked(attributes: dict[str, Any], data: Any) -> Envelope:
    """Return the event of these attributes; raise if they break a rule of CloudEvents 1.0."""
    if (version := attributes.pop("specversion", None)) != "1.0":
        said = "is missing" if version is None else f'is "{version!s:.50}"'
        raise BadEnvelope(f'attribute "specversion" {said}; expected "1.0"')
    for name, value in attributes.items():
        if not NAME.match(name):
            raise BadEnvelope(f'"{name:.50}" is not the name of an attribute: use a-z and 0-9')
        if not isinstance(value, str | int | bool):
            raise BadEnvelope(f'attribute "{name}" is not text, an integer or a boolean')
    for name in REQUIRED:
        if not isinstance(attributes.get(name), str) or not attributes[name]:
            raise BadEnvelope(f'attribute "{name}" is missing or empty')
    return Envelope(attributes, data)


def read_structured(value: bytes | dict[str, Any]) -> Envelope:
    """Read an event in the JSON format of CloudEvents."""
    found = parse_object(value) if isinstance(value, bytes) else value
    attributes = {
        name: item for name, item in found.items() if name not in ("data", "data_base64") and item is not None
    }
    if "data" in found and "data_base64" in found:
        raise BadEnvelope("an event has data or data_base64, not both")
    data = found.get("data")
    if "data_base64" in found:
        try:
            data = base64.b64decode(found["data_base64"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise BadEnvelope("data_base64 is not base64") from error
    return checked(attributes, data)


def write_structured(event: Envelope) -> bytes:
    """Write an event in the JSON format of CloudEvents. Bytes are data in JSON."""
    whole: dict[str, Any] = {"specversion": "1.0", **event.attributes}
    if event.data is not None:
        whole["data"] = orjson.Fragment(event.data) if isinstance(event.data, bytes) else event.data
    return orjson.dumps(whole)


def read_dictionary(value: bytes) -> Envelope:
    """Read an event from a plain dictionary with `event_id`, `event_type`, `event_version`, `timestamp` and `data`."""
    found = parse_object(value)
    if "event_type" not in found:
        looks = "specversion" in found
        hint = (
            '; a structured CloudEvent needs the header "content-type: application/cloudevents+json"' if looks else ""
        )
        raise BadEnvelope(f'the value is not an event: it has no "event_type"{hint}')
    attributes = {new: found[old] for old, new in _DICTIONARY.items() if found.get(old) is not None}
    attributes |= {"source": attributes.get("source", "unknown"), "specversion": "1.0"}
    if found.get("event_version") is not None:
        attributes[VERSION] = str(found["event_version"])
    metadata = found.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise BadEnvelope('"metadata" is not an object')
    if isinstance(metadata.get("causation_id"), str):
        attributes["causationid"] = metadata["causation_id"]
    event = checked(attributes, found.get("data"))
    return Envelope(event.attributes, event.data, metadata)


def write_dictionary(event: Envelope) -> bytes:
    """Write an event as a plain dictionary."""
    known = event.attributes
    whole = {old: known[new] for old, new in _DICTIONARY.items() if new in known}
    whole["event_version"] = f"{event.version}.0"
    whole["data"] = orjson.Fragment(event.data) if isinstance(event.data, bytes) else event.data
    extra = {"causation_id": known["causationid"]} if "causationid" in known else {}
    extra |= {"sequence": known["sequence"]} if "sequence" in known else {}
    whole["metadata"] = {**event.metadata, **extra}
    return orjson.dumps(whole)


def data_object(event: Envelope) -> Any:
    """Return the data of an event as an object; data in bytes must be JSON."""
    kind = str(event.attributes.get("datacontenttype", "application/json")).partition(";")[0].strip().lower()
    if kind not in ("application/json", "text/json") and not kind.endswith("+json"):
        raise BadEnvelope(f'data of type "{kind:.100}" is not JSON')
    if not isinstance(event.data, bytes):
        return event.data
    try:
        return orjson.loads(event.data)
    except orjson.JSONDecodeError as error:
        raise BadEnvelope(f"the data is not JSON: {error}") from error


def parse_object(value: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise BadEnvelope(f"the envelope is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadEnvelope("the envelope is not a JSON object")
    return found

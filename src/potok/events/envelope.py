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

NAME = re.compile(r"[a-z0-9]+")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:)(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_PLAIN = r"A-Za-z0-9\-._~!$&'()*+,;="
_ESCAPE = r"%[0-9A-Fa-f]{2}"
_PATH = rf"(?:[{_PLAIN}:@]|{_ESCAPE})*(?:/(?:[{_PLAIN}:@]|{_ESCAPE})*)*"
_URI_REFERENCE = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*:)?"
    rf"(?://(?:(?:[{_PLAIN}:]|{_ESCAPE})*@)?(?:\[[0-9A-Fa-f:.vV]+\]|(?:[{_PLAIN}]|{_ESCAPE})*)(?::[0-9]*)?(?=[/?#]|\Z))?"
    rf"(?P<path>{_PATH})(?:\?(?:[{_PLAIN}:@/?]|{_ESCAPE})*)?(?P<fragment>#(?:[{_PLAIN}:@/?]|{_ESCAPE})*)?"
)
"""A URI reference of RFC 3986."""
_TOKEN = r"[!#$%&'*+\-.^_`{|}~0-9A-Za-z]+"
_MEDIA_TYPE = re.compile(rf'{_TOKEN}/{_TOKEN}\s*(?:;\s*{_TOKEN}=(?:{_TOKEN}|"(?:[^"\\]|\\.)*")\s*)*', re.ASCII)
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr((plane << 16) + last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)
"""Control characters, surrogates and the noncharacters of Unicode."""
_INTEGERS = range(-(1 << 31), 1 << 31)
REQUIRED = ("id", "source", "type")
VERSION = "eventversion"
"""The extension attribute that holds the version of the data."""

ENCRYPTED = "encryptedfields"
"""The extension attribute that names the encrypted fields of the data, separated by spaces."""

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
        if not (whole.isascii() and whole.isdigit() and len(whole) < 10) or int(whole) < 1:
            raise BadEnvelope(f'"{given:.100}" is not the version of an event')
        return int(whole)

    @property
    def time_ms(self) -> int | None:
        """The time of the event in milliseconds since 1970, if it has one."""
        text = self.attributes.get("time")
        if text is None:
            return None
        return _instant_ms(str(text))


def _instant_ms(text: str) -> int:
    """Return a timestamp of RFC 3339 in milliseconds since 1970. A leap second is the first of the next minute."""
    parts = _TIME.fullmatch(text)
    try:
        if parts is None:
            raise ValueError
        date, minute, second, fraction, zone = parts.groups()
        leap = second == "60"
        at = dt.datetime.fromisoformat(f"{date}T{minute}{'59' if leap else second}{fraction or ''}{zone.upper()}")
    except ValueError as error:
        raise BadEnvelope(f'attribute "time" is not a timestamp of RFC 3339: "{text:.100}"') from error
    return (at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1) + 1000 * leap


def checked(attributes: dict[str, Any], data: Any) -> Envelope:
    """Return the event of these attributes; raise if they break a rule of CloudEvents 1.0."""
    event = _named(attributes, data)
    for name in ("source", "dataschema"):
        text = event.attributes.get(name)
        if text is None:
            continue
        found = _URI_REFERENCE.fullmatch(text) if isinstance(text, str) and text else None
        if found is None or (found["scheme"] is None and ":" in found["path"].partition("/")[0]):
            raise BadEnvelope(f'attribute "{name}" is not a URI: "{text!s:.100}"')
        if name == "dataschema" and found["scheme"] is None:
            raise BadEnvelope(f'attribute "{name}" is not an absolute URI: "{text:.100}"')
    kind = event.attributes.get("datacontenttype")
    if kind is not None and not (isinstance(kind, str) and _MEDIA_TYPE.fullmatch(kind)):
        raise BadEnvelope(f'attribute "datacontenttype" is not a media type: "{kind!s:.100}"')
    subject = event.attributes.get("subject")
    if subject is not None and not (isinstance(subject, str) and subject):
        raise BadEnvelope('attribute "subject" is empty or not text')
    return event


def _named(attributes: dict[str, Any], data: Any) -> Envelope:
    if (version := attributes.pop("specversion", None)) != "1.0":
        said = "is missing" if version is None else f'is "{version!s:.50}"'
        raise BadEnvelope(f'attribute "specversion" {said}; expected "1.0"')
    for name, value in attributes.items():
        if not NAME.fullmatch(name) or name == "data":
            raise BadEnvelope(f'"{name:.50}" is not the name of an attribute: use a-z and 0-9, and not "data"')
        if not isinstance(value, str | int | bool):
            raise BadEnvelope(f'attribute "{name}" is not text, an integer or a boolean')
        if isinstance(value, int) and value not in _INTEGERS:
            raise BadEnvelope(f'attribute "{name}" is not an integer of 32 bits')
        if isinstance(value, str) and _UNPRINTABLE.search(value):
            raise BadEnvelope(f'attribute "{name}" has a control character')
    for name in REQUIRED:
        if not isinstance(attributes.get(name), str) or not attributes[name]:
            raise BadEnvelope(f'attribute "{name}" is missing or empty')
    event = Envelope(attributes, data)
    event.time_ms  # noqa: B018 - raises if it is bad
    return event


def read_structured(value: bytes | dict[str, Any]) -> Envelope:
    """Read an event in the JSON format of CloudEvents."""
    found = parse_object(value) if isinstance(value, bytes) else value
    attributes = {
        name: item for name, item in found.items() if name not in ("data", "data_base64") and item is not None
    }
    if found.get("data") is not None and found.get("data_base64") is not None:
        raise BadEnvelope("an event has data or data_base64, not both")
    data = found.get("data")
    if found.get("data_base64") is not None:
        try:
            data = base64.b64decode(found["data_base64"], validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise BadEnvelope("data_base64 is not base64") from error
    return checked(attributes, data)


def write_structured(event: Envelope) -> bytes:
    """Write an event in the JSON format of CloudEvents. Bytes are JSON if the content type says so."""
    whole: dict[str, Any] = {"specversion": "1.0", **event.attributes}
    if isinstance(event.data, bytes) and not is_json(event):
        whole["data_base64"] = base64.b64encode(event.data).decode()
    elif event.data is not None:
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
    for name in ("event_id", "event_type"):
        if not isinstance(found.get(name), str) or not found[name]:
            raise BadEnvelope(f'"{name}" is missing, empty or not text')
    attributes = {new: found[old] for old, new in _DICTIONARY.items() if found.get(old) is not None}
    attributes |= {"source": attributes.get("source", "unknown"), "specversion": "1.0"}
    if found.get("event_version") is not None:
        attributes[VERSION] = str(found["event_version"])
    metadata = found.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise BadEnvelope('"metadata" is not an object')
    if isinstance(metadata.get("causation_id"), str):
        attributes["causationid"] = metadata["causation_id"]
    encrypted = metadata.get("encrypted_fields")
    if isinstance(encrypted, list) and all(isinstance(name, str) for name in encrypted):
        attributes[ENCRYPTED] = " ".join(encrypted)
    event = _named(attributes, found.get("data"))
    return Envelope(event.attributes, event.data, metadata)


def write_dictionary(event: Envelope) -> bytes:
    """Write an event as a plain dictionary."""
    known = event.attributes
    whole = {old: known[new] for old, new in _DICTIONARY.items() if new in known}
    whole["event_version"] = f"{event.version}.0"
    whole["data"] = orjson.Fragment(event.data) if isinstance(event.data, bytes) else event.data
    extra = {"causation_id": known["causationid"]} if "causationid" in known else {}
    extra |= {"sequence": known["sequence"]} if "sequence" in known else {}
    extra |= {"encrypted_fields": known[ENCRYPTED].split(" ")} if ENCRYPTED in known else {}
    whole["metadata"] = {**event.metadata, **extra}
    return orjson.dumps(whole)


def data_object(event: Envelope) -> Any:
    """Return the data of an event as an object; data in bytes must be JSON."""
    if event.data is None:
        return None
    if not is_json(event):
        raise BadEnvelope(f'data of type "{event.attributes["datacontenttype"]:.100}" is not JSON')
    if not isinstance(event.data, bytes):
        return event.data
    try:
        return orjson.loads(event.data)
    except orjson.JSONDecodeError as error:
        raise BadEnvelope(f"the data is not JSON: {error}") from error


def is_json(event: Envelope) -> bool:
    """Whether the data is JSON, which it is unless another type is given."""
    given = event.attributes.get("datacontenttype")
    if given is None or given == "application/json":
        return True
    kind = str(given).partition(";")[0].strip().lower()
    return kind.endswith(("/json", "+json"))


def parse_object(value: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise BadEnvelope(f"the envelope is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadEnvelope("the envelope is not a JSON object")
    return found

"""Parse records from JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from potok.log.clients.encoding import to_bytes
from potok.monitoring.trace_context import TRACEPARENT
from potok.records.log_record import NO_TIMESTAMP, LogRecord
from potok.server.errors import BadRequest

Headers = tuple[tuple[str, bytes], ...]

_FIELDS = frozenset({"key", "key_base64", "value", "value_base64", "timestamp", "headers", "partition"})


@dataclass(frozen=True, slots=True)
class AddressedRecord:
    """A record and its partition; None for the partition of its key."""

    record: LogRecord
    partition: int | None


def records_of(given: Any, trace: Headers = ()) -> list[AddressedRecord]:
    """Parse one record, a list of them, or `{"records": [...]}`. Those without a trace get that of the request."""
    if isinstance(given, Mapping) and given.keys() == {"records"}:
        given = given["records"]
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, list):
        raise BadRequest("the body must be an object or a list of objects", hint='send {"key": "k", "value": {...}}')
    return [_record(item, number, trace) for number, item in enumerate(given)]


def _record(item: Any, number: int, trace: Headers) -> AddressedRecord:
    where = f"record {number + 1}"
    if not isinstance(item, Mapping):
        raise BadRequest(f"{where} is not an object", hint='write {"key": "k", "value": {...}}')
    odd = sorted(item.keys() - _FIELDS)
    if odd:
        raise BadRequest(f'{where} has an unknown field "{odd[0]}"', hint=f"use: {', '.join(sorted(_FIELDS))}")
    if not item.keys() & {"value", "value_base64"}:
        hint = 'write "value": null for a tombstone'
        raise BadRequest(f"{where} has no value", hint=hint)
    timestamp, headers = _whole(item, "timestamp", where), _headers(item.get("headers"), where)
    if trace and all(name != TRACEPARENT for name, _ in headers):
        headers += trace
    record = LogRecord(
        _bytes(item, "key", where),
        _bytes(item, "value", where),
        NO_TIMESTAMP if timestamp is None else timestamp,
        headers,
    )
    return AddressedRecord(record, _whole(item, "partition", where))


def _bytes(item: Mapping[str, Any], name: str, where: str) -> bytes | None:
    encoded = item.get(f"{name}_base64")
    if encoded is None:
        return to_bytes(item.get(name))
    if name in item:
        raise BadRequest(f"{where} has two values for {name}", hint=f"write {name} or {name}_base64")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadRequest(f"{name}_base64 of {where} is not base64", hint="encode the bytes as in RFC 4648") from error


def _whole(item: Mapping[str, Any], name: str, where: str) -> int | None:
    found = item.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or found < 0 or found >= 1 << 62:
        raise BadRequest(f"the {name} of {where} is not an integer", hint=f"write {name} as an integer, or omit it")
    return found


def _headers(given: Any, where: str) -> Headers:
    if not given:
        return ()
    if not isinstance(given, Mapping) or not all(isinstance(value, str) for value in given.values()):
        raise BadRequest(f"the headers of {where} are not an object of strings", hint='write {"name": "value"}')
    return tuple((name, value.encode()) for name, value in given.items())

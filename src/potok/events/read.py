"""Decode the records of a topic as typed events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from potok.events.envelope import BadEnvelope, Envelope, data_object
from potok.events.event_type import FORGOTTEN, TYPE_FIELD, EventType, EventTypes, upcasted
from potok.events.kafka_binding import own_headers, read_record
from potok.events.personal.fields import decrypted
from potok.events.personal.key_store import KeyStore
from potok.records.conversion.convert import Reading
from potok.records.conversion.fit import fit
from potok.records.declared_class import completes, retyped
from potok.records.rows import completed

CAUSE = "potok.event.id"
CORRELATION = "potok.event.correlation"
"""Headers that a record has inside a query: the id of its event, and the correlation that its results inherit."""


@dataclass(slots=True)
class ReadEvents:
    """Events, with the record each comes from: none for one that was dropped, several for one that was split.
    `errors` are by record.
    """

    rows: npt.NDArray[np.intp]
    values: pa.Array
    headers: list[list[dict[str, Any]]]
    times: list[int | None]
    errors: dict[int, str]


def read_events(values: pa.Array, headers: pa.Array, types: EventTypes, keys: KeyStore | None = None) -> ReadEvents:
    """Decode records to events of these types: decrypt personal fields, and upcast older versions."""
    known = {type_.name: type_ for type_ in types.types}
    events: list[tuple[int, Envelope]] = []
    errors: dict[int, str] = {}
    listed = headers.to_pylist()
    for row, (value, own) in enumerate(zip(values.to_pylist(), listed, strict=True)):
        try:
            event = read_record(value, own, types.envelope)
            if event.type in known or not (types.selects or event.type == FORGOTTEN):
                events.append((row, event))
        except ValueError as error:
            errors[row] = str(error)
    personal = decrypted(events, keys, errors)
    found: list[tuple[int, Envelope, EventType, Any]] = []
    for row, event in events:
        try:
            if row not in errors:
                found += [(row, event, known[event.type], data) for data in _data(event, known, personal.get(row))]
        except ValueError as error:
            errors[row] = str(error)
    typed = _typed(found, types, errors)
    for row, event in events:
        if row in personal and errors.get(row, "").startswith(("data of", "the upcast")):
            # The text would quote personal data in the dead letter.
            errors[row] = f"data of {event.type} with personal fields cannot be upcast, or does not fit its class"
    kept = [index for index, item in enumerate(found) if item[0] not in errors]
    return ReadEvents(
        np.array([found[index][0] for index in kept], np.intp),
        typed.take(pa.array(kept, pa.int64())),
        [_noted(listed[found[index][0]], found[index][1]) for index in kept],
        [found[index][1].time_ms for index in kept],
        errors,
    )


def _data(event: Envelope, known: dict[str, EventType], decrypted: dict[str, Any] | None) -> list[Any]:
    if event.type not in known:
        raise BadEnvelope(f'unknown event type "{event.type:.200}"; the stream reads {", ".join(known)}')
    type_, data = known[event.type], data_object(event) if decrypted is None else decrypted
    if event.version == type_.version:
        return [{} if data is None else data]
    return upcasted({} if data is None else data, event.version, type_)


def _typed(found: list[tuple[int, Envelope, EventType, Any]], types: EventTypes, errors: dict[int, str]) -> pa.Array:
    """Return the data of all events as one column; a class of its own decides which fields are required."""
    whole = types.schema
    parts: list[pa.Array] = []
    order: list[int] = []
    for type_ in types.types:
        at = [index for index, item in enumerate(found) if item[2] is type_]
        fitted = fit([found[index][3] for index in at], type_.schema, Reading.JSON)
        column, failed = retyped(fitted.column, type_.schema.arrow), fitted.errors
        if completes(type_.schema.arrow):
            made = completed(column, type_.schema)
            column, failed = made.column, {**made.errors, **failed}
        for number, text in failed.items():
            errors.setdefault(found[at[number]][0], f"data of {type_.name}: {text}")
        parts.append(column if len(types.types) == 1 else _widened(column, type_.name, whole.arrow))
        order += at
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(places))


def _widened(column: pa.Array, name: str, whole: pa.DataType) -> pa.Array:
    """Return values of one event type with the fields of all."""
    own = dict(zip([field.name for field in column.type], column.flatten(), strict=True))
    own[TYPE_FIELD] = pa.array([name] * len(column), pa.string())
    fields = [own[f.name].cast(f.type) if f.name in own else pa.nulls(len(column), f.type) for f in whole]
    return pa.StructArray.from_arrays(fields, fields=list(whole))


def _noted(headers: Any, event: Envelope) -> list[dict[str, Any]]:
    id_ = str(event.attributes["id"])
    correlation = str(event.attributes.get("correlationid", id_))
    notes = [(CAUSE, id_), (CORRELATION, correlation)]
    return [*own_headers(headers), *({"name": name, "value": text.encode()} for name, text in notes)]

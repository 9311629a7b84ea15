"""The personal fields of a chunk of events: encrypted and decrypted with one lookup in the key store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from potok.events.envelope import ENCRYPTED, BadEnvelope, Envelope, data_object
from potok.events.event_type import EventType
from potok.events.personal.key_store import KeyStore, SubjectKey
from potok.records.formats.registry import format_named
from potok.records.schemas.schema import Field, Schema

_NO_KEYS = "it has encrypted fields, and the program has no key store; set personal_keys"


def encrypted_fields(event: Envelope) -> list[str]:
    return str(event.attributes.get(ENCRYPTED, "")).split()


def decrypted(
    events: Sequence[tuple[int, Envelope]], keys: KeyStore | None, errors: dict[int, str]
) -> dict[int, dict[str, Any]]:
    """Return the data of the events that have encrypted fields, by row. What was encrypted for a subject that has been
    forgotten is None.
    """
    marked = [(row, event, fields) for row, event in events if (fields := encrypted_fields(event))]
    if not marked:
        return {}
    if keys is None:
        errors.update((row, _NO_KEYS) for row, _, _ in marked)
        return {}
    from potok.events.personal.encryption import decrypt, key_id

    opened: list[tuple[int, Envelope, list[str], dict[str, Any]]] = []
    ids: set[bytes] = set()
    for row, event, fields in marked:
        try:
            data = data_object(event)
            if not isinstance(data, dict):
                raise BadEnvelope("the data is not an object, and has no encrypted fields")
            ids.update([key_id(data.get(field), field) for field in fields])
            opened.append((row, event, fields, data))
        except BadEnvelope as error:
            errors[row] = str(error)
    known = keys.keys(ids)
    found: dict[int, dict[str, Any]] = {}
    for row, event, fields, data in opened:
        try:
            found[row] = {**data, **{field: decrypt(data[field], known, event, field) for field in fields}}
        except BadEnvelope as error:
            errors[row] = str(error)
    return found


@dataclass(slots=True)
class Sealed:
    """Events of one type without their personal fields, and what is needed to encrypt those."""

    column: pa.Array
    """The data with null for the personal fields."""
    _texts: dict[str, list[bytes | None]]
    _subjects: dict[str, list[Any]]
    _keys: dict[str, SubjectKey]

    def error(self, number: int) -> str | None:
        """Return why the personal fields of an event cannot be encrypted."""
        for field, texts in self._texts.items():
            if texts[number] is not None and self._subjects[field][number] is None:
                return f'personal field "{field}" has a value, and the event names no subject for it'
        return None

    def encrypt(self, number: int, event: Envelope) -> Envelope:
        """Return an event with its personal fields encrypted; those of a subject that was forgotten stay null."""
        from potok.events.personal.encryption import encrypt

        tokens: dict[str, str] = {}
        for field, texts in self._texts.items():
            text = texts[number]
            if text is not None:
                token = encrypt(self._keys[str(self._subjects[field][number])], text, event, field)
                if token is not None:
                    tokens[field] = token
        if not tokens:
            return event
        data = orjson.dumps({**orjson.loads(event.data), **tokens})
        return Envelope({**event.attributes, ENCRYPTED: " ".join(tokens)}, data, event.metadata)


def sealed(column: pa.Array, type_: EventType, keys: KeyStore, topic: str) -> Sealed:
    """Take the personal fields out of a column of events, and look up the keys of their subjects."""
    columns = dict(zip([field.name for field in column.type], column.flatten(), strict=True))
    schemas = {field.name: field.schema for field in type_.schema.fields}
    texts = {field: _texts(columns[field], schemas[field]) for field in type_.personal}
    subjects = {field: columns[subject].to_pylist() for field, subject in type_.personal.items()}
    wanted = {
        str(subject)
        for field, named in subjects.items()
        for subject, text in zip(named, texts[field], strict=True)
        if subject is not None and text is not None
    }
    bare = [pa.nulls(len(column), field.type) if field.name in texts else columns[field.name] for field in column.type]
    struct = pa.StructArray.from_arrays(bare, fields=list(column.type), mask=column.is_null())
    return Sealed(struct, texts, subjects, keys.for_writing(wanted, topic))


def _texts(column: pa.Array, schema: Schema) -> list[bytes | None]:
    """Return the values of a field as JSON of `{"value": ...}`."""
    whole = Schema.struct([Field("value", schema)])
    struct = pa.StructArray.from_arrays([column], fields=list(whole.arrow))
    encoded = format_named("json").encode(struct, whole)
    present: Mapping[int, bool] = dict(enumerate(column.is_valid().to_pylist()))
    return [text if present[row] else None for row, text in enumerate(encoded.values.to_pylist())]

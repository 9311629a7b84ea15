"""CloudEvents as rows of SQL: a column for each attribute, and one for the data."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pyarrow as pa

from potok.events.envelope import BadEnvelope, Envelope, checked, data_object, is_json, write_structured
from potok.events.kafka_binding import CONTENT_TYPE, STRUCTURED, is_structured, own_headers, read_record
from potok.events.write import Written
from potok.records.formats.format import Decoded, binary_column
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema

FORMAT = "cloudevents"
DATA = "data"
_INTEGER = re.compile(r"-?[0-9]{1,10}")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def decode_rows(
    values: pa.Array, headers: pa.Array, schema: Schema, columns: Sequence[str] | None, *, is_table: bool
) -> Decoded:
    """Decode records to rows. A record without a value deletes a row of a table; in a stream it is an event without
    data if its headers say so, and else no row.
    """
    wanted = schema.select(columns)
    special = {field.name: field for field in wanted.fields if _is_special(field.name, field.type)}
    needs_data = any(name.lower() == DATA for name in wanted.names) and not any(n.lower() == DATA for n in special)
    texts = {field.name.lower(): field.type for field in wanted.fields if not pa.types.is_string(field.type)}
    documents: list[bytes | None] = []
    events: list[Envelope | None] = []
    errors: dict[int, str] = {}
    listed = [None] * len(values) if headers.null_count == len(headers) else headers.to_pylist()
    for row, (value, own) in enumerate(zip(binary_column(values).to_pylist(), listed, strict=True)):
        event, document = None, None
        if value is not None or not (is_table or _is_plain(own)):
            try:
                event = read_record(value, own, FORMAT)
                document = _document(event, value, own, texts, needs_data=needs_data)
            except BadEnvelope as error:
                event, errors[row] = None, str(error)
        events.append(event)
        documents.append(document)
    plain = wanted.select([name for name in wanted.names if name not in special])
    decoded = format_named("sql_json").decode(pa.array(documents, pa.binary()), plain)
    whole: Any = decoded.column
    missing = whole.is_null()
    parts = dict(zip(plain.names, whole.flatten(), strict=True)) if plain.names else {}
    for name, field in special.items():
        parts[name] = _special_column(name, field.type, events)
        missing = pa.array([event is None for event in events], pa.bool_()) if not plain.names else missing
    if not special:
        return Decoded(whole, {**decoded.errors, **errors})
    struct = pa.StructArray.from_arrays([parts[n] for n in wanted.names], fields=list(wanted.arrow), mask=missing)
    return Decoded(struct, {**decoded.errors, **errors})


def rows_of_stream(batch: pa.RecordBatch) -> pa.Array:
    """Return which records of a batch are rows of a stream: those with a value, or with the headers of an event."""
    there = batch.column("value").is_valid()
    if not batch.column("value").null_count:
        return there
    headers = batch.column("headers").to_pylist()
    rows = [valid or not _is_plain(own) for valid, own in zip(there.to_pylist(), headers, strict=True)]
    return pa.array(rows, pa.bool_())


def encode_rows(
    column: pa.Array,
    headers: Sequence[Any],
    times: Sequence[int | None],
    source: str,
    identify: Callable[[int, bytes], str],
) -> Written:
    """Encode rows as events in structured mode. `identify` returns the id of a row without one, given its data."""
    schema = declared_schema(column.type)
    assert schema is not None
    parts = dict(zip([name.lower() for name in schema.names], column.flatten(), strict=True))
    data, errors = _data_column(parts.pop(DATA, None), len(column))
    binary = any(name.lower() == DATA and pa.types.is_binary(type_) for name, type_ in _types(column.type))
    attributes = {name: part.to_pylist() for name, part in parts.items()}
    present = column.is_valid().to_pylist()
    values: list[bytes | None] = [None] * len(column)
    written: list[list[dict[str, Any]]] = [[] for _ in range(len(column))]
    for row in range(len(column)):
        if not present[row] or row in errors:
            continue
        given = {name: _attribute(items[row]) for name, items in attributes.items() if items[row] is not None}
        found = {"source": source, "specversion": "1.0", **given}
        if "time" not in found and times[row] is not None:
            found["time"] = _rfc_3339(_EPOCH + dt.timedelta(milliseconds=times[row] or 0))
        kind, body = data[row]
        if body is not None:
            found.setdefault("datacontenttype", kind)
        if not found.get("id"):
            found["id"] = identify(row, body if isinstance(body, bytes) else str(body).encode())
        try:
            event = checked(found, body)
            if binary and is_json(event):
                data_object(event)
        except BadEnvelope as error:
            errors[row] = f"the row is not an event: {error}"
            continue
        values[row] = write_structured(event)
        written[row] = [*own_headers(headers[row]), {"name": CONTENT_TYPE, "value": STRUCTURED.encode()}]
    return Written(pa.array(values, pa.binary()), written, errors)


def _types(struct: pa.DataType) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in struct]


def _is_special(name: str, type_: pa.DataType) -> bool:
    """Whether a column is not that of the JSON: an instant, or the bytes of the data."""
    return (name.lower() == "time" and pa.types.is_timestamp(type_)) or (
        name.lower() == DATA and pa.types.is_binary(type_)
    )


def _special_column(name: str, type_: pa.DataType, events: list[Envelope | None]) -> pa.Array:
    if name.lower() == "time":
        times = [None if event is None else event.time_ms for event in events]
        return pa.array(times, pa.int64()).cast(pa.timestamp("ms", "UTC")).cast(type_)
    return pa.array([None if event is None else _bytes(event.data) for event in events], type_)


def _bytes(data: Any) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    return data.encode() if isinstance(data, str) else orjson.dumps(data)


def _is_plain(headers: Any) -> bool:
    """Whether a record has no headers of an event."""
    return not any(h["name"].startswith("ce_") or h["name"].lower() == CONTENT_TYPE for h in headers or ())


def _document(
    event: Envelope, value: bytes | None, headers: Any, types: dict[str, pa.DataType], *, needs_data: bool
) -> bytes:
    """Return an event as JSON. An event in structured mode is that already, so its data keeps all digits. In binary
    mode, attributes are text, which is converted to the types of the columns.
    """
    if is_structured(headers) and not isinstance(event.data, bytes):
        assert value is not None
        return value
    attributes = {name: _converted(item, types.get(name)) for name, item in event.attributes.items()}
    if not needs_data or event.data is None:
        return write_structured(Envelope(attributes))
    if is_json(event):
        data_object(event)
        return write_structured(Envelope(attributes, event.data))
    try:
        text = event.data.decode() if isinstance(event.data, bytes) else event.data
    except UnicodeDecodeError as error:
        raise BadEnvelope('the data is not text in UTF-8; declare the column as "DATA BYTES"') from error
    return write_structured(Envelope(attributes, text))


def _converted(item: Any, type_: pa.DataType | None) -> Any:
    """Return the value that the canonical text of an attribute stands for; any other text as it is."""
    if type_ is not None and pa.types.is_integer(type_) and isinstance(item, str) and _INTEGER.fullmatch(item):
        return int(item)
    if type_ is not None and pa.types.is_boolean(type_) and item in ("true", "false"):
        return item == "true"
    return item


def _data_column(column: pa.Array | None, rows: int) -> tuple[list[tuple[str, Any]], dict[int, str]]:
    """Return the content type and the data of each row: bytes of JSON, or text or bytes as they are."""
    if column is None:
        return [("", None)] * rows, {}
    if pa.types.is_binary(column.type):
        return [("application/octet-stream", item) for item in column.to_pylist()], {}
    encoded = format_named("sql_json").encode(column, declared_schema(column.type))
    there = column.is_valid().to_pylist()
    texts = column.to_pylist() if pa.types.is_string(column.type) else None
    bodies = encoded.values.to_pylist()
    found = [
        ("application/json", None if not there[row] else bodies[row] if texts is None else texts[row])
        for row in range(rows)
    ]
    return found, dict(encoded.errors)


def _attribute(value: Any) -> Any:
    return _rfc_3339(value) if isinstance(value, dt.datetime) else value


def _rfc_3339(at: dt.datetime) -> str:
    return at.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

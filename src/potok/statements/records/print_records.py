"""Format records for PRINT: decoded by the stream or table over the topic, or guessed from their bytes."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime
from typing import Any

import orjson
import pyarrow as pa

from potok.events.rows import FORMAT, decode_rows
from potok.records.formats.format import binary_column
from potok.records.formats.registered.headers import with_id
from potok.records.formats.registry import format_named
from potok.sql.catalog import Source
from potok.sql.planner.sources import key_serde
from potok.statements.frames import python_values

_INT, _BIGINT = struct.Struct(">i"), struct.Struct(">q")
_TEXT_FORMATS = ("sql_json", "sql_delimited")


def printed_lines(batch: pa.RecordBatch, partition: int, source: Source | None) -> list[str]:
    """`rowtime: ..., key: ..., value: ..., partition: ...` for each record."""
    keys = shown_keys(batch, source)
    values = shown_values(batch, source)
    times = batch.column("timestamp").to_pylist()
    return [
        f"rowtime: {_instant(at)}, key: {key}, value: {value}, partition: {partition}"
        for at, key, value in zip(times, keys, values, strict=True)
    ]


def _instant(at_ms: int | None) -> str:
    if at_ms is None or at_ms < 0:
        return "N/A"
    try:
        at = datetime.fromtimestamp(at_ms / 1_000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(at_ms)
    return f"{at:%Y/%m/%d %H:%M:%S}.{at_ms % 1_000:03d} Z"


def shown_keys(batch: pa.RecordBatch, source: Source | None) -> list[str]:
    data = batch.column("key").to_pylist()
    if source is None or not source.keys:
        return [guessed(key) for key in data]
    serde = key_serde(source)
    decoded = format_named(serde.format).decode(binary_column(with_id(batch, serde.format, "key")), serde.schema)
    objects = decoded.column if isinstance(decoded.column, list) else python_values(decoded.column)
    shown = []
    for row, (raw, found) in enumerate(zip(data, objects, strict=True)):
        if row in decoded.errors or found is None:
            shown.append(guessed(raw))
        elif source.window is not None:
            shown.append(f"[{_plain(found['key'])}@{found['start']}/{'-' if found['end'] is None else found['end']}]")
        else:
            shown.append(_plain(found))
    return shown


def shown_values(batch: pa.RecordBatch, source: Source | None) -> list[str]:
    data = batch.column("value").to_pylist()
    if source is None or source.value_format.startswith(_TEXT_FORMATS):
        return [guessed(value) for value in data]
    if source.value_format == FORMAT and source.value_schema is not None:
        decoded = decode_rows(
            batch.column("value"), batch.column("headers"), source.value_schema, None, is_table=source.is_table
        )
    else:
        values = binary_column(with_id(batch, source.value_format, "value"))
        decoded = format_named(source.value_format).decode(values, source.value_schema)
    objects = decoded.column if isinstance(decoded.column, list) else python_values(decoded.column)
    return [
        guessed(raw) if row in decoded.errors or found is None else _plain(found)
        for row, (raw, found) in enumerate(zip(data, objects, strict=True))
    ]


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return json.dumps(value, default=str, ensure_ascii=False)
    return str(value)


def guessed(data: bytes | None) -> str:
    """Format bytes as what they most likely are: JSON, text, a Kafka number, or hexadecimal."""
    if data is None:
        return "<null>"
    try:
        orjson.loads(data)
        return data.decode()
    except ValueError:
        pass
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable():
        return text
    if len(data) == _INT.size:
        return str(_INT.unpack(data)[0])
    if len(data) == _BIGINT.size:
        return str(_BIGINT.unpack(data)[0])
    return text if text else f"0x{data.hex()}"

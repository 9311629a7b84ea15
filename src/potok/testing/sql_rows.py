"""Read the content of a topic as the columns of its stream or table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from potok.errors import SchemaError
from potok.events.rows import FORMAT, decode_rows
from potok.log.broker import HEADERS, Broker
from potok.records.formats.registry import format_named
from potok.records.log_record import Headers, LogRecord
from potok.sql.catalog import Source
from potok.sql.planner.sources import key_serde
from potok.sql.types import quoted
from potok.testing.outputs import records_of


@dataclass(frozen=True, slots=True)
class SqlRow:
    """A record as columns by name, including those of the key; a deleted row has only these."""

    columns: dict[str, Any]
    timestamp_ms: int
    window: tuple[int, int] | None
    """Start and end, in milliseconds; None if the source has no windows."""
    deleted: bool
    partition: int
    offset: int
    headers: Headers


class UnreadableRecord(SchemaError):
    """Bytes that do not match the declaration of the source."""

    def __init__(self, source: Source, record: LogRecord, why: str) -> None:
        super().__init__(
            f"record {record.partition}:{record.offset} of {quoted(source.name)} cannot be read: {why}",
            hint="inspect its bytes with driver.read(topic)",
        )


def read_rows(broker: Broker, source: Source) -> list[SqlRow]:
    """Return all records of the topic of a source, partition after partition."""
    if not broker.has_topic(source.topic):
        return []
    records = records_of(broker, source.topic)
    serde = key_serde(source)
    keys = _decoded(source, records, [r.key for r in records], serde.format, serde.schema)
    if source.value_format == FORMAT:
        values = _events(source, records)
    else:
        values = _decoded(source, records, [r.value for r in records], source.value_format, source.value_schema)
    return [_row(source, *found) for found in zip(records, keys, values, strict=True)]


def _events(source: Source, records: Sequence[LogRecord]) -> list[Any]:
    headers = pa.array([[{"name": n, "value": v} for n, v in r.headers] or None for r in records], HEADERS)
    values, schema = pa.array([r.value for r in records], pa.binary()), source.value_schema
    decoded = decode_rows(values, headers, schema, None, is_table=source.is_table)
    for row, why in decoded.errors.items():
        raise UnreadableRecord(source, records[row], why)
    column: Any = decoded.column
    return list(column.to_pylist(maps_as_pydicts="strict"))


def _decoded(
    source: Source, records: Sequence[LogRecord], data: Sequence[bytes | None], format_: str, schema: Any
) -> list[Any]:
    decoded = format_named(format_).decode(pa.array(data, pa.binary()), schema)
    for row, why in decoded.errors.items():
        raise UnreadableRecord(source, records[row], str(why))
    column = decoded.column
    return column if isinstance(column, list) else list(column.to_pylist(maps_as_pydicts="strict"))


def _row(source: Source, record: LogRecord, key: Any, value: Any) -> SqlRow:
    window = None
    if source.window is not None and key is not None:
        window, key = (key["start"], key["end"]), key["key"]
    names = [column.name for column in source.keys]
    columns = {names[0]: key} if len(names) == 1 else {name: (key or {}).get(name) for name in names}
    deleted = record.value is None
    columns |= {} if deleted else value or {}
    position = (record.partition, record.offset, record.headers)
    return SqlRow(columns, record.timestamp_ms, window, deleted, *position)

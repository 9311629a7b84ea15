"""Decode the records of a topic to frames, by the declaration of a stream or table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from potok.events.rows import FORMAT, decode_rows, rows_of_stream
from potok.records.formats.format import Decoded, binary_column
from potok.records.formats.registered.headers import with_id
from potok.records.formats.registry import format_named
from potok.sql.analysis.scope import WINDOW_BOUNDS, slot_of
from potok.sql.catalog import Source
from potok.sql.planner.sources import HeaderColumn, Instants, key_serde
from potok.sql.types import BIGINT, INT
from potok.statements.frames import Frame


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """Decoded records. `deletes` marks records without a value, which are not rows of a stream; in a table, records
    without a key are not rows. `keys` are bytes."""

    frame: Frame
    deletes: pa.Array
    keys: pa.Array
    offsets: pa.Array
    unreadable: Mapping[int, str] = field(default_factory=dict)
    """Why other records could not be decoded, by offset."""


class RecordReader:
    """Converts batches of a topic to frames. Only the `wanted` columns are decoded, as slots of the alias."""

    def __init__(self, source: Source, alias: str, wanted: frozenset[str]) -> None:
        self._source, self._alias = source, alias
        prefix = slot_of(alias, "")
        names = {slot.removeprefix(prefix) for slot in wanted if slot.startswith(prefix)}
        timed = source.column(source.timestamp) if source.timestamp and "ROWTIME" in names else None
        self._timed = timed
        self._names = names | ({timed.name} if timed is not None else set())
        self._fields = [column for column in source.values if column.name in self._names]
        self._keyed = any(column.name in self._names for column in source.keys) or not names.isdisjoint(WINDOW_BOUNDS)
        serde = key_serde(source)
        self._key_format, self._key_schema = format_named(serde.format), serde.schema
        self._value_format, self._value_schema = format_named(source.value_format), source.value_schema

    def read(self, batch: pa.RecordBatch, partition: int) -> ReadRecords:
        bad: dict[int, str] = {}
        columns: dict[str, pa.Array] = {}
        if self._keyed:
            self._read_key(batch, columns, bad)
        if self._fields:
            names = [column.name for column in self._fields]
            decoded = self._decoded(batch, names)
            bad.update(decoded.errors)
            for column in self._fields:
                columns[column.name] = pc.struct_field(decoded.column, column.name)
        for header in self._source.headers:
            if header.name in self._names:
                columns[header.name] = _headers(batch.column("headers"), header.header or "")
        self._read_position(batch, partition, columns, bad)
        slots = {slot_of(self._alias, name): column for name, column in columns.items()}
        frame, keys = Frame(slots, batch.num_rows), batch.column("key")
        deletes = batch.column("value").is_null()
        if self._source.value_format == FORMAT and not self._source.is_table:
            deletes = pc.invert(rows_of_stream(batch))
        offsets = batch.column("offset")
        empty = self._empty(keys, deletes)
        if not bad and not empty:
            return ReadRecords(frame, deletes, keys, offsets)
        good = np.array(sorted(set(range(batch.num_rows)) - bad.keys() - empty), np.int64)
        at = pa.array(good)
        unreadable = {offsets[row].as_py(): why for row, why in bad.items() if row not in empty}
        return ReadRecords(frame.take(good), deletes.take(at), keys.take(at), offsets.take(at), unreadable)

    def _decoded(self, batch: pa.RecordBatch, names: list[str]) -> Decoded:
        if self._source.value_format == FORMAT:
            headers, is_table = batch.column("headers"), self._source.is_table
            return decode_rows(batch.column("value"), headers, self._value_schema, names, is_table=is_table)
        values = binary_column(with_id(batch, self._source.value_format, "value"))
        return self._value_format.decode(values, self._value_schema, names)

    def _empty(self, keys: pa.Array, deletes: pa.Array) -> set[int]:
        """Return the records that are not rows."""
        missing = deletes if not self._source.is_table else keys.is_null() if self._source.keys else None
        return set() if missing is None or not missing.true_count else set(np.flatnonzero(missing).tolist())

    def _read_key(self, batch: pa.RecordBatch, columns: dict[str, pa.Array], bad: dict[int, str]) -> None:
        source = self._source
        found = binary_column(with_id(batch, self._source.key_format, "key"))
        decoded = self._key_format.decode(found, self._key_schema)
        bad.update(decoded.errors)
        key: Any = decoded.column
        if source.window is not None:
            for name, part in zip(WINDOW_BOUNDS, ("start", "end"), strict=True):
                columns[name] = pc.struct_field(key, part)
            key = pc.struct_field(key, "key")
        for column in source.keys:
            columns[column.name] = pc.struct_field(key, column.name) if len(source.keys) > 1 else key

    def _read_position(
        self, batch: pa.RecordBatch, partition: int, columns: dict[str, pa.Array], bad: dict[int, str]
    ) -> None:
        rows = batch.num_rows
        if "ROWTIME" in self._names:
            times = batch.column("timestamp")
            if self._timed is not None:
                times = Instants(self._source.timestamp_format)([columns[self._timed.name]], rows, {})
                timeless = np.flatnonzero(times.is_null().to_numpy(zero_copy_only=False)).tolist()
                bad |= {row: f"{self._timed.name} is not a valid timestamp" for row in timeless if row not in bad}
            columns["ROWTIME"] = times
        if "ROWPARTITION" in self._names:
            columns["ROWPARTITION"] = pa.repeat(pa.scalar(partition, INT), rows)
        if "ROWOFFSET" in self._names:
            columns["ROWOFFSET"] = batch.column("offset").cast(BIGINT)


def _headers(column: pa.Array, name: str) -> pa.Array:
    """Return the headers as arrays. Records without headers have an empty array, not NULL."""
    empty = pa.scalar([], column.type)
    whole = pc.if_else(column.is_null(), empty, column) if column.null_count else column
    return HeaderColumn(name)([whole], len(whole), {})

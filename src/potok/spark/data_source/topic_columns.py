"""The columns of a topic: keys and values as bytes, or decoded to declared types."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import QueryError
from potok.log.broker import HEADERS
from potok.records.formats.default import default_format
from potok.records.formats.registered.headers import with_id
from potok.records.formats.registry import format_named
from potok.records.schemas.declared_schema import declared_schema
from potok.records.schemas.schema import Schema
from potok.spark.data_source.options import TopicOptions

INSTANT = pa.timestamp("us", "UTC")


class UndecodableRecordError(QueryError):
    """A record that does not have the declared type."""

    def __init__(self, position: str, reason: str) -> None:
        super().__init__(
            f"record {position} cannot be decoded: {reason}",
            hint='declare its type; or pass .option("mode", "permissive"), which reads null and adds the column error',
        )


class TopicColumns:
    """Converts records of the log to the columns of a DataFrame."""

    def __init__(self, options: TopicOptions) -> None:
        self._options = options
        self._key = _declared(options.key, options.key_format)
        self._value = _declared(options.value, options.value_format)
        self._permissive = options.mode == "permissive"
        fields = [
            pa.field("key", pa.binary() if self._key is None else self._key[1].arrow),
            pa.field("value", pa.binary() if self._value is None else self._value[1].arrow),
            pa.field("topic", pa.string()),
            pa.field("partition", pa.int32()),
            pa.field("offset", pa.int64()),
            pa.field("timestamp", INSTANT),
            pa.field("headers", HEADERS),
        ]
        self.schema = pa.schema([*fields, pa.field("error", pa.string())] if self._permissive else fields)

    def convert(self, batch: pa.RecordBatch, partition: int) -> pa.RecordBatch:
        """Convert a batch of READ_SCHEMA of one partition, without the records outside the range of time."""
        batch = self._inside(batch)
        key, key_errors = _decoded(with_id(batch, self._options.key_format or "", "key"), self._key)
        value, value_errors = _decoded(with_id(batch, self._options.value_format or "", "value"), self._value)
        errors = {row: f"key: {text}" for row, text in key_errors.items()}
        errors |= {row: f"value: {text}" for row, text in value_errors.items()}
        count = batch.num_rows
        if errors and not self._permissive:
            row, reason = min(errors.items())
            raise UndecodableRecordError(f"{self._options.topic}/{partition}@{batch.column('offset')[row]}", reason)
        columns = [
            key,
            value,
            pa.repeat(pa.scalar(self._options.topic), count),
            pa.repeat(pa.scalar(partition, pa.int32()), count),
            batch.column("offset"),
            batch.column("timestamp").cast(pa.timestamp("ms", "UTC")).cast(INSTANT),
            batch.column("headers"),
        ]
        if self._permissive:
            columns.append(
                pa.array([errors.get(row) for row in range(count)] if errors else pa.nulls(count, pa.string()))
            )
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _inside(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        times, low, high = batch.column("timestamp"), self._options.starting_timestamp, self._options.ending_timestamp
        if low is not None:
            batch = batch.filter(pc.greater_equal(times, low))
            times = batch.column("timestamp")
        return batch if high is None else batch.filter(pc.less(times, high))


def _declared(text: str | None, format_name: str | None) -> tuple[str, Schema] | None:
    if text is None:
        return None
    schema = declared_schema(text)
    assert schema is not None
    return format_name or default_format(schema.arrow), schema


def _decoded(column: pa.Array, declared: tuple[str, Schema] | None) -> tuple[pa.Array, Mapping[int, str]]:
    if declared is None:
        return column, {}
    name, schema = declared
    decoded = format_named(name).decode(column, schema)
    assert not isinstance(decoded.column, list)
    return decoded.column, decoded.errors

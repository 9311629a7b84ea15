"""Read a range of a topic: decode bytes to columns, and give every record its event time and its stream time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from potok.errors import QueryError
from potok.events.personal.key_store import KeyStore
from potok.events.read import read_events
from potok.events.rows import FORMAT, decode_rows, rows_of_stream
from potok.log.broker import HEADERS, Broker
from potok.log.record_limits import record_sizes
from potok.operators.core.batch_spec import BatchTooLarge, Range
from potok.operators.core.call import Errors
from potok.operators.core.chunk import Chunk, Column, Ints
from potok.operators.core.dead_letters import Reason
from potok.operators.core.event_time import event_times
from potok.operators.core.operator import Operator, Task, all_but
from potok.operators.core.read_changes import is_changes, read_changes, without_truncates
from potok.operators.windows.expiry import NEVER
from potok.records.declared_class import completes, retyped
from potok.records.formats.registered.headers import with_id
from potok.records.formats.registry import format_named
from potok.records.rows import completed
from potok.topology.inference.infer import Step
from potok.topology.nodes import Serde, StreamSource, TableSource
from potok.topology.nodes.sources import OwnRecords, TimeNotion

FAR_JUMP_MS = 86_400_000
"""A record that advances the stream time by more than this causes a warning: all later records may be late."""


class ReadBytes:
    """The bytes that one task has read from all sources. It stops when they exceed the limit."""

    def __init__(self, most: int) -> None:
        self._most, self._records, self.total = most, 0, 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.total += int(record_sizes(batch).sum())
        self._records += batch.num_rows
        if 0 < self._most < self.total and self._records > 1:
            raise BatchTooLarge(self.total / self._records)


class SourceReader(Operator):
    """Read the ranges of one source and push the decoded records."""

    def __init__(
        self,
        node: StreamSource | TableSource,
        task: Task,
        step: Step,
        columns: list[str] | None,
        broker: Broker,
        *,
        aligned: bool = False,
        skips: OwnRecords | None = None,
        keys: KeyStore | None = None,
    ) -> None:
        super().__init__(node.name, task)
        self._skips, self._keys = skips, keys
        self._node, self._step, self._columns, self._broker = node, step, columns, broker
        self._by_log_time = aligned and node.timestamps.function is None
        self.stream_times: dict[int, int] = {}
        self._log_times: dict[int, int] = {}
        self.bytes = ReadBytes(0)

    def read(self, part: Range, partition: int) -> None:
        self.stream_times[part.input_partition] = part.stream_time_ms
        for batch in self._broker.read(self._node.topic, partition, part.start, part.end):
            self.take(batch, part.input_partition, part.stream_time_ms)

    def take(self, batch: pa.RecordBatch, input_partition: int, start_ms: int) -> None:
        """Process the next records of a partition, whose stream time before the batch was `start_ms`."""
        self.bytes.add(batch)
        if self.task.times is not None:
            self.task.times.sample(batch.column("headers"))
        chunk, self.stream_times[input_partition] = self._chunk(
            batch, input_partition, self.stream_times.get(input_partition, start_ms)
        )
        if self._by_log_time and batch.num_rows:
            self._align(chunk, batch, input_partition, start_ms)
        self.task.records_in[self.name] += batch.num_rows
        self.emit(chunk)

    def _chunk(self, batch: pa.RecordBatch, input_partition: int, stream_time: int) -> tuple[Chunk, int]:
        envelopes = self._node.value.format == FORMAT
        if isinstance(self._node, StreamSource) and self._node.skips_null:
            batch = batch.filter(rows_of_stream(batch)) if envelopes else _with_values(batch)
        if is_changes(self._node):
            batch = without_truncates(batch)
        count = batch.num_rows
        key, key_errors = decode(with_id(batch, self._node.key.format, "key"), self._node.key, None)
        if isinstance(self._node, StreamSource) and self._node.events is not None:
            return self._events(batch, input_partition, stream_time, (key, key_errors))
        headers = batch.column("headers")
        if envelopes:
            value, value_errors = self._rows_of_events(batch)
        elif isinstance(self._node, TableSource) and is_changes(self._node):
            value, value_errors, headers = read_changes(batch, self._node, self._columns)
        else:
            values = with_id(batch, self._node.value.format, "value")
            value, value_errors = decode(values, self._node.value, self._columns)
        chunk = Chunk(
            key,
            value,
            self._notion(batch),
            np.zeros(count, np.int64),
            np.full(count, input_partition, np.int64),
            batch.column("offset").to_numpy(),
            headers=None if headers.null_count == count else headers,
            raw_key=batch.column("key"),
            raw_value=batch.column("value"),
            intact=True,
        )
        errors = {row: f"key: {text}" for row, text in key_errors.items()} | value_errors
        chunk = self.set_aside(chunk, errors, Reason.DECODE)
        if self._node.timestamps.function is not None and len(chunk):
            chunk = self._stamp(chunk)
        if len(chunk):
            chunk.stream_time = self._stream_times(chunk.timestamp, stream_time)
            stream_time = int(chunk.stream_time[-1])
        if self._skips is not None and chunk.headers is not None:
            # They advance the stream time, whichever batch reads them.
            chunk = chunk.where(_written_by_others(chunk.headers, self._skips))
        return chunk, stream_time

    def _rows_of_events(self, batch: pa.RecordBatch) -> tuple[Column, Errors]:
        """Decode CloudEvents to rows of SQL."""
        schema, is_table = self._node.value.schema, isinstance(self._node, TableSource)
        assert schema is not None
        values, headers = batch.column("value"), batch.column("headers")
        decoded = decode_rows(values, headers, schema, self._columns, is_table=is_table)
        return decoded.column, decoded.errors

    def _events(
        self, batch: pa.RecordBatch, input_partition: int, stream_time: int, keys: tuple[Column, Errors]
    ) -> tuple[Chunk, int]:
        """Decode envelopes. The time of an event is that of its envelope, if it has one."""
        assert isinstance(self._node, StreamSource)
        assert self._node.events is not None
        count = batch.num_rows
        read = read_events(batch.column("value"), batch.column("headers"), self._node.events, self._keys)
        whole = Chunk(
            keys[0],
            [None] * count,
            self._notion(batch),
            np.zeros(count, np.int64),
            np.full(count, input_partition, np.int64),
            batch.column("offset").to_numpy(),
            headers=batch.column("headers"),
            raw_key=batch.column("key"),
            raw_value=batch.column("value"),
        )
        errors = {row: f"key: {text}" for row, text in keys[1].items()} | read.errors
        self.set_aside(whole, errors, Reason.DECODE)
        chunk = whole.take(read.rows)
        # Dead letters of later steps are read again from the log: these headers are not the record's.
        chunk = replace(chunk, value=read.values, headers=pa.array(read.headers, HEADERS), raw_key=None, raw_value=None)
        if self._node.timestamps.notion is TimeNotion.EVENT:
            own = [at if time is None else time for at, time in zip(chunk.timestamp.tolist(), read.times, strict=True)]
            chunk.timestamp = np.array(own, np.int64)
        chunk = chunk.where(np.array([row not in keys[1] for row in read.rows.tolist()], np.bool_))
        if self._node.timestamps.function is not None and len(chunk):
            chunk = self._stamp(chunk)
        if len(chunk):
            chunk.stream_time = self._stream_times(chunk.timestamp, stream_time)
            stream_time = int(chunk.stream_time[-1])
        return chunk, stream_time

    def _align(self, chunk: Chunk, batch: pa.RecordBatch, input_partition: int, start_ms: int) -> None:
        """Set the time by which inputs are aligned. The planner uses the timestamps in the log, including those of
        records that cannot be decoded, without a limit on how far one of them advances the stream time.
        """
        times = np.asarray(batch.column("timestamp").to_numpy(), np.int64)
        reached = np.maximum(np.maximum.accumulate(times), self._log_times.get(input_partition, start_ms))
        self._log_times[input_partition] = int(reached[-1])
        reached = reached[np.searchsorted(batch.column("offset").to_numpy(), chunk.offset)]
        if not np.array_equal(reached, chunk.stream_time):
            chunk.alignment_time = reached

    def _stream_times(self, times: Ints, stream_time: int) -> Ints:
        """Return the greatest time so far; a record that is far ahead advances it by no more than the limit."""
        reached = np.maximum(np.maximum.accumulate(times), stream_time)
        bound = self._node.timestamps.max_jump_ms
        moved = np.diff(reached, prepend=stream_time if stream_time > NEVER else reached[0])
        if bound is not None and moved.max() > bound:
            reached = bounded(times, stream_time, bound)
        elif bound is None and moved.max() > FAR_JUMP_MS:
            self.task.jumps[self._node.topic] += int(np.count_nonzero(moved > FAR_JUMP_MS))
        return reached

    def _notion(self, batch: pa.RecordBatch) -> Ints:
        notion = self._node.timestamps.notion
        if notion is TimeNotion.PROCESSING:
            return np.full(batch.num_rows, self.task.processing_time_ms, np.int64)
        name = "ingested" if notion is TimeNotion.INGESTION else "timestamp"
        return np.asarray(batch.column(name).to_numpy(), np.int64)

    def _stamp(self, chunk: Chunk) -> Chunk:
        """Take the event time from a field or a function; a record whose time cannot be read is set aside. A record
        without a value keeps its timestamp.
        """
        timestamps = self._node.timestamps
        assert timestamps.function is not None
        times, errors = event_times(chunk, timestamps.function, self._step.exprs[0], timestamps.format)
        if errors and chunk.raw_value is not None and chunk.raw_value.null_count:
            own = [row for row in errors if not chunk.raw_value[row].is_valid]
            times = times.copy()
            times[own] = chunk.timestamp[own]
            errors = {row: text for row, text in errors.items() if chunk.raw_value[row].is_valid}
        stamped = replace(chunk, timestamp=times)
        if not errors:
            return stamped
        if timestamps.strict:
            row = min(errors)
            position = f"{self._node.topic}, partition {chunk.input_partition[row]}, offset {chunk.offset[row]}"
            hint = "correct or delete the record, or set such records aside"
            raise QueryError(f"the time of a record cannot be read ({position}): {errors[row]}", hint=hint)
        self.set_aside(chunk, errors, Reason.TIMESTAMP)
        return stamped.where(all_but(errors, len(chunk)))


def decode(values: pa.Array, serde: Serde, columns: list[str] | None) -> tuple[Column, Errors]:
    schema = serde.schema
    if schema is None:
        decoded = format_named(serde.format).decode(values, None, columns)
        return decoded.column, decoded.errors
    # A class that checks its instances needs all fields.
    checks = completes(schema.arrow)
    if checks or not pa.types.is_struct(schema.arrow):
        columns = None
    decoded = format_named(serde.format).decode(values, schema, columns)
    if isinstance(decoded.column, list):
        return decoded.column, decoded.errors
    column = retyped(decoded.column, schema.select(columns).arrow)
    if not checks:
        return column, decoded.errors
    made = completed(column, schema)
    return made.column, {**made.errors, **decoded.errors}


def bounded(times: Ints, stream_time: int, bound: int) -> Ints:
    """Return the stream time after each record, if one record may advance it by at most `bound`."""
    reached = np.empty(len(times), np.int64)
    for row, at in enumerate(times.tolist()):
        stream_time = at if stream_time <= NEVER else max(stream_time, min(at, stream_time + bound))
        reached[row] = stream_time
    return reached


def _with_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the records that have a value."""
    values = batch.column("value")
    return batch.filter(values.is_valid()) if values.null_count else batch


def _written_by_others(headers: pa.Array, own: OwnRecords) -> npt.NDArray[np.bool_]:
    """Return which records do not have a header."""
    names, values = pc.list_flatten(headers).flatten()
    found = pc.fill_null(pc.and_(pc.equal(names, own.header), pc.equal(values, own.value)), False)
    rows = pc.list_parent_indices(headers).filter(found)
    keep = np.ones(len(headers), np.bool_)
    keep[rows.to_numpy()] = False
    return keep

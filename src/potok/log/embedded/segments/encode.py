"""Encode records as frames: normalize the columns, split them by size and add checksums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from potok.checksum import crc32
from potok.clock import now_ms
from potok.errors import LogError
from potok.log.broker import HEADERS
from potok.log.embedded.segments.frame import ARROW, ROWS, WITH_HEADERS, Frame, encode_rows
from potok.log.errors import RecordTooLarge
from potok.log.record_limits import record_sizes
from potok.records.log_record import NO_TIMESTAMP, LogRecord

ROWS_LIMIT = 4
"""Frames of up to this many records are written as ROWS; for more, Arrow is both smaller and faster."""

FRAME_RECORDS = 65_536
FRAME_BYTES = 16 << 20

BODY_SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64())])
BODY_SCHEMA_WITH_HEADERS = BODY_SCHEMA.append(pa.field("headers", HEADERS))

EncodedFrame = tuple[Frame, bytes | memoryview | pa.Buffer]


def columns_of(records: Sequence[LogRecord]) -> pa.RecordBatch:
    """Convert plain records into the batch that `append` takes."""
    headers = None
    if any(record.headers for record in records):
        headers = [[{"name": n, "value": v} for n, v in record.headers] or None for record in records]
    columns = [
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array([record.timestamp_ms for record in records], pa.int64()),
    ]
    if headers is None:
        return pa.record_batch(columns, schema=BODY_SCHEMA)
    return pa.record_batch([*columns, pa.array(headers, HEADERS)], schema=BODY_SCHEMA_WITH_HEADERS)


def normalised(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with the columns of a frame's body: types cast, missing columns added, timestamps set."""
    names = batch.schema.names
    if "value" not in names:
        raise LogError(
            "a batch for the log needs the column value", hint="its columns are key, value, timestamp, headers"
        )
    key = _cast(batch.column("key"), pa.binary()) if "key" in names else pa.nulls(len(batch), pa.binary())
    columns = [key, _cast(batch.column("value"), pa.binary()), _timestamps(batch)]
    if "headers" in names:
        headers = _cast(batch.column("headers"), HEADERS)
        if headers.null_count < len(batch):
            return pa.record_batch([*columns, headers], schema=BODY_SCHEMA_WITH_HEADERS)
    return pa.record_batch(columns, schema=BODY_SCHEMA)


def encode(batch: pa.RecordBatch, max_record_bytes: int) -> Iterator[EncodedFrame]:
    """Yield the frames of a batch from `normalised`."""
    rows = len(batch)
    if rows == 0:
        return
    if rows <= FRAME_RECORDS and batch.nbytes <= min(FRAME_BYTES, max_record_bytes):
        yield _encode_frame(batch)
        return
    ends = np.cumsum(_record_sizes(batch, max_record_bytes))
    start = 0
    while start < rows:
        before = int(ends[start - 1]) if start else 0
        by_size = int(np.searchsorted(ends, before + FRAME_BYTES, side="right"))
        end = min(max(by_size, start + 1), start + FRAME_RECORDS, rows)
        yield _encode_frame(batch.slice(start, end - start))
        start = end


def encode_record(record: LogRecord, max_record_bytes: int) -> EncodedFrame:
    """Encode one record as a frame, without Arrow."""
    size = len(record.key or b"") + len(record.value or b"") + sum(len(n) + len(v or b"") for n, v in record.headers)
    if size > max_record_bytes:
        raise RecordTooLarge(size, max_record_bytes)
    if record.timestamp_ms == NO_TIMESTAMP:
        record = LogRecord(record.key, record.value, now_ms(), record.headers)
    body = encode_rows((record,))
    return Frame(ROWS, 0, 1, len(body), crc32(body), record.timestamp_ms, record.timestamp_ms), body


def records_of(batch: pa.RecordBatch) -> list[LogRecord]:
    """Return the rows of a small normalised batch."""
    keys, values, times = (batch.column(i).to_pylist() for i in range(3))
    headers = batch.column("headers").to_pylist() if batch.num_columns > 3 else [None] * len(batch)
    return [
        LogRecord(key, value, at, tuple((item["name"] or "", item["value"]) for item in listed or ()))
        for key, value, at, listed in zip(keys, values, times, headers, strict=True)
    ]


def _encode_frame(batch: pa.RecordBatch) -> EncodedFrame:
    times = pc.min_max(batch.column("timestamp"))
    body: bytes | pa.Buffer
    if len(batch) <= ROWS_LIMIT:
        kind, flags, body = ROWS, 0, encode_rows(records_of(batch))
    else:
        kind, flags, body = ARROW, WITH_HEADERS if batch.num_columns > 3 else 0, batch.serialize()
    size = len(body) if isinstance(body, bytes) else body.size
    return Frame(kind, flags, len(batch), size, crc32(body), times["min"].as_py(), times["max"].as_py()), body


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else column.cast(wanted)


def _timestamps(batch: pa.RecordBatch) -> pa.Array:
    if "timestamp" not in batch.schema.names:
        return pa.array(np.full(len(batch), now_ms(), np.int64))
    column = batch.column("timestamp")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
    column = _cast(column, pa.int64())
    if column.null_count == 0 and not pc.any(pc.equal(column, NO_TIMESTAMP)).as_py():
        return column
    return pc.if_else(pc.fill_null(pc.not_equal(column, NO_TIMESTAMP), False), column, now_ms())


def _record_sizes(batch: pa.RecordBatch, max_record_bytes: int) -> npt.NDArray[np.int64]:
    """Return the approximate size of records in a frame; raise if one is over the limit."""
    sizes = record_sizes(batch)
    largest = int(sizes.max())
    if largest > max_record_bytes:
        raise RecordTooLarge(largest, max_record_bytes)
    return sizes + 16

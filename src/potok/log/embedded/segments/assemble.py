"""Assemble batches from frames: large frames without copying, small ones merged into larger batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from potok.log.broker import HEADERS, READ_SCHEMA
from potok.log.embedded.segments.encode import BODY_SCHEMA, BODY_SCHEMA_WITH_HEADERS, FRAME_BYTES, FRAME_RECORDS
from potok.log.embedded.segments.frame import WITH_HEADERS, RowColumns

_ALONE_RECORDS = 8_192
_ALONE_BYTES = 1 << 20
"""A frame of this size is not copied into a larger batch."""

COMPACTED_WITH_HEADERS = READ_SCHEMA
COMPACTED_SCHEMA = READ_SCHEMA.remove(READ_SCHEMA.get_field_index("headers"))

_NO_HEADERS = pa.nulls(FRAME_RECORDS, HEADERS)


class Assembler:
    """Converts the frames of a range of offsets, in order, into batches of READ_SCHEMA.

    `tombstones_since` has, for each compacted frame, the offset after it and when its tombstones were first seen.
    """

    def __init__(self, start: int, end: int) -> None:
        self._start = start
        self._end = end
        self._rows = RowColumns()
        self._rows_base = start
        self._batches: list[pa.RecordBatch] = []
        self._records = 0
        self._bytes = 0
        self._alone = False
        self.tombstones_since: list[tuple[int, int]] = []

    def add_rows(self, data: bytes, position: int, size: int, count: int, base: int, ingested_ms: int) -> None:
        if base != self._rows_base + len(self._rows):
            self._close_rows()  # compaction has emptied the segment between them
            self._rows_base = base
        self._rows.decode(data, position, count, ingested_ms)
        self._records += count
        self._bytes += size

    def add_arrow(self, body: pa.Buffer, flags: int, count: int, base: int, ingested_ms: int) -> None:
        self._close_rows()
        schema = BODY_SCHEMA_WITH_HEADERS if flags & WITH_HEADERS else BODY_SCHEMA
        read = pa.ipc.read_record_batch(body, schema)
        if len(read) != count:
            raise pa.ArrowInvalid(f"{len(read)} records instead of {count}")
        headers = read.column(3) if flags & WITH_HEADERS else no_headers(count)
        ingested = pa.array(np.full(count, ingested_ms, np.int64))
        self._keep(_batch(read.column(0), read.column(1), read.column(2), ingested, headers, base))
        self._records += count
        self._bytes += body.size

    def add_compacted(self, body: pa.Buffer, flags: int, count: int, since_ms: int) -> int:
        """Return the offset after the last record: the offsets of a compacted frame have gaps."""
        self._close_rows()
        read = pa.ipc.read_record_batch(body, COMPACTED_WITH_HEADERS if flags & WITH_HEADERS else COMPACTED_SCHEMA)
        if len(read) != count:
            raise pa.ArrowInvalid(f"{len(read)} records instead of {count}")
        if not flags & WITH_HEADERS:
            columns = [*read.columns[:4], no_headers(count), read.column(4)]
            read = pa.RecordBatch.from_arrays(columns, schema=READ_SCHEMA)
        offsets = read.column(5).to_numpy()
        first, last = np.searchsorted(offsets, (self._start, self._end)).tolist()
        if first < last:
            self._batches.append(read.slice(first, last - first))
        self._records += count
        self._bytes += body.size
        behind = int(offsets[-1]) + 1
        self.tombstones_since.append((behind, since_ms))
        return behind

    def go_on_at(self, start: int) -> None:
        """Continue at `start`: the file that was being read was replaced."""
        self._close_rows()
        self._start = start

    def must_finish_before(self, size: int, count: int) -> bool:
        """Return whether the collected records must be yielded before a frame of `size` bytes and `count` records is
        added."""
        before, self._alone = self._alone, count >= _ALONE_RECORDS or size >= _ALONE_BYTES
        return before or self._alone or self._records + count > FRAME_RECORDS or self._bytes + size > FRAME_BYTES

    def finish(self) -> Iterator[pa.RecordBatch]:
        self._close_rows()
        if len(self._batches) == 1:
            yield self._batches[0]
        elif self._batches:
            yield pa.concat_batches(self._batches)
        self._batches = []
        self._records = self._bytes = 0

    def _close_rows(self) -> None:
        rows = self._rows
        if not rows.timestamps:
            return
        batch = _batch(
            pa.array(rows.keys, pa.binary()),
            pa.array(rows.values, pa.binary()),
            pa.array(rows.timestamps, pa.int64()),
            pa.array(rows.ingested, pa.int64()),
            _headers(rows),
            self._rows_base,
        )
        self._rows = RowColumns()
        self._keep(batch)

    def _keep(self, batch: pa.RecordBatch) -> None:
        base = batch.column(5)[0].as_py()
        first = max(self._start - base, 0)
        last = min(self._end - base, len(batch))
        self._batches.append(batch if last - first == len(batch) else batch.slice(first, last - first))


def no_headers(count: int) -> pa.Array:
    return _NO_HEADERS.slice(0, count) if count <= FRAME_RECORDS else pa.nulls(count, HEADERS)


def _headers(rows: RowColumns) -> pa.Array:
    if not rows.headers:
        return no_headers(len(rows))
    listed = [
        [{"name": name, "value": value} for name, value in rows.headers[i]] if i in rows.headers else None
        for i in range(len(rows))
    ]
    return pa.array(listed, HEADERS)


def _batch(
    key: pa.Array, value: pa.Array, timestamp: pa.Array, ingested: pa.Array, headers: pa.Array, base: int
) -> pa.RecordBatch:
    offsets = pa.array(np.arange(base, base + len(key), dtype=np.int64))
    return pa.RecordBatch.from_arrays([key, value, timestamp, ingested, headers, offsets], schema=READ_SCHEMA)

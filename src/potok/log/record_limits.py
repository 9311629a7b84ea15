"""Find the records that a log would reject before they are sent: by column, and record by record only for misfits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from potok.log.errors import KeylessRecord, RecordTooLarge

Misfits = dict[int, str]
"""The rows of a batch that a log rejects, each with the reason."""


def record_sizes(batch: pa.RecordBatch, per_header: int = 0) -> npt.NDArray[np.int64]:
    """Return the size of key, value and headers of each record; `per_header` is the overhead of each header."""
    sizes = _lengths(batch.column("key")) + _lengths(batch.column("value"))
    if "headers" in batch.schema.names:
        headers = batch.column("headers")
        if headers.null_count < len(headers):
            sizes += _header_sizes(headers, per_header)
    return sizes


def keyless(topic: str, keys: pa.Array) -> Misfits:
    """Return the rows without a key, for a compacted topic."""
    if not keys.null_count:
        return {}
    why = KeylessRecord(topic).message
    return dict.fromkeys(np.flatnonzero(keys.is_null().to_numpy(zero_copy_only=False)).tolist(), why)


def oversized(batch: pa.RecordBatch, limit: int, per_record: int = 0, per_header: int = 0) -> Misfits:
    """Return the rows over a limit, including the overhead of a record."""
    if len(batch) == 0 or (not per_header and batch.nbytes + per_record <= limit):
        return {}
    sizes = record_sizes(batch, per_header) + per_record
    if sizes.max() <= limit:
        return {}
    return {row: RecordTooLarge(int(sizes[row]), limit).message for row in np.flatnonzero(sizes > limit).tolist()}


def _lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    lengths = pc.binary_length(column)
    if lengths.null_count:
        lengths = pc.fill_null(lengths, 0)
    return np.asarray(lengths, np.int64)


def _header_sizes(headers: pa.ListArray, per_header: int) -> npt.NDArray[np.int64]:
    names, values = headers.flatten().flatten()
    reached = np.concatenate([np.zeros(1, np.int64), np.cumsum(_lengths(names) + _lengths(values) + per_header)])
    counts = np.asarray(pc.fill_null(pc.list_value_length(headers), 0).to_numpy(zero_copy_only=False), np.int64)
    ends = np.cumsum(counts)
    return np.asarray(reached[ends] - reached[ends - counts], np.int64)

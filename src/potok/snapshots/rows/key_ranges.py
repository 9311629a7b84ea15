"""Convert a range or prefix of keys into a range of stored keys, so that a reader does not scan everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from potok.checksum import crc32
from potok.records.keys import UnusableKeyError, encode_key
from potok.snapshots.snapshot import Snapshot
from potok.state.store import LONGEST_PREFIX, after_prefix, stored_stop

Span = tuple[bytes, bytes | None]
"""Stored keys from the first (inclusive) to the second (exclusive)."""

ALL: Span = (b"", None)

_ORDERED = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
)


def span_of_range(low: Any, high: Any, key_type: pa.DataType | None) -> Span:
    """Return the stored keys for low <= key < high; all, if stored bytes do not sort like their keys."""
    if key_type is None or not any(test(key_type) for test in _ORDERED):
        return ALL
    try:
        start, stop = encode_key(low, key_type), encode_key(high, key_type)
    except UnusableKeyError:
        return ALL
    return (start or b"")[:LONGEST_PREFIX], stored_stop(stop)


def span_of_prefix(prefix: str, key_type: pa.DataType | None) -> Span:
    """Return the stored keys of the strings with a prefix."""
    if key_type is None or not (pa.types.is_string(key_type) or pa.types.is_large_string(key_type)):
        return ALL
    start = prefix.encode("utf-8", "surrogatepass")[:LONGEST_PREFIX]
    return start, after_prefix(start)


def scan_span(snapshot: Snapshot, table: str, span: Span) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows in a range of stored keys."""
    yield from snapshot.scan(table, *span)
    yield from empty_key(snapshot, table, span)


def empty_key(snapshot: Snapshot, table: str, span: Span) -> Iterator[tuple[bytes, bytes]]:
    """Yield the row of the empty key if it is in the range: it is stored out of order, so it is looked up."""
    start, stop = span
    if not start and stop is not None:
        data = snapshot.get(table, crc32(b"") % snapshot.shards, b"")
        if data is not None:
            yield b"", data

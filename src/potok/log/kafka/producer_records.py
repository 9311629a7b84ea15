"""Convert columns into records for Kafka's client, one at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from potok.log.errors import RecordTooLarge
from potok.log.kafka.admin.limits import PER_HEADER, PER_RECORD
from potok.log.kafka.errors import TimeBefore1970
from potok.log.record_limits import record_sizes

Headers = list[tuple[str, str | bytes | None]]

_NOW = 0
"""librdkafka treats 0 as "the current time", so the first millisecond of 1970 is sent as the second."""


class Outgoing(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers | None


def outgoing(batch: pa.RecordBatch) -> Iterator[Outgoing]:
    """Yield the rows of a batch from `normalised`."""
    keys, values, times = (batch.column(i).to_pylist() for i in range(3))
    headers = map(_headers, batch.column(3).to_pylist()) if batch.num_columns > 3 else itertools.repeat(None)
    for key, value, at, listed in zip(keys, values, times, headers, strict=False):
        yield Outgoing(key, value, at or _NOW + 1, listed)


def check(topic: str, batch: pa.RecordBatch, max_record_bytes: int) -> None:
    """Raise for what Kafka's client would reject, before any record is sent."""
    if len(batch) == 0:
        return
    earliest = pc.min(batch.column("timestamp")).as_py()
    if earliest < 0:
        raise TimeBefore1970(topic, earliest)
    largest = int(record_sizes(batch, PER_HEADER).max()) + PER_RECORD
    if largest > max_record_bytes:
        raise RecordTooLarge(largest, max_record_bytes)


def _headers(listed: list[dict[str, bytes | None]] | None) -> Headers | None:
    if not listed:
        return None
    return [(str(item["name"] or ""), item["value"]) for item in listed]
